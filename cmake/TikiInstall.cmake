# Installation: libraries, headers, command, CMake package and pkg-config file. Nothing in it names
# the folder it was installed to, so the tree can be moved.
include(CMakePackageConfigHelpers)

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/tiki)
install(TARGETS tiki EXPORT tiki_targets)
install(TARGETS tiki_static EXPORT tiki_static_targets)
if(TARGET tiki_cli)
  install(TARGETS tiki_cli)
endif()
install(FILES ${tiki_headers} ${tiki_generated_headers}
        DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/tiki)
install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})

install(EXPORT tiki_targets NAMESPACE tiki:: FILE tikiTargets.cmake DESTINATION ${package_dir})
install(EXPORT tiki_static_targets NAMESPACE tiki:: FILE tikiStaticTargets.cmake
        DESTINATION ${package_dir})
configure_package_config_file(cmake/tikiConfig.cmake.in ${tiki_generated_dir}/tikiConfig.cmake
                              INSTALL_DESTINATION ${package_dir})
# Before 1.0 a new minor version may break: see include/tiki/version.h.
write_basic_package_version_file(${tiki_generated_dir}/tikiConfigVersion.cmake
                                 COMPATIBILITY SameMinorVersion)
install(FILES ${tiki_generated_dir}/tikiConfig.cmake ${tiki_generated_dir}/tikiConfigVersion.cmake
        DESTINATION ${package_dir})

# A static link needs what pkg-config told this build about each library, plus the system's own.
set(pc_private)
foreach(module ${tiki_pkg_modules})
  list(APPEND pc_private ${${module}_LDFLAGS})
endforeach()
string(JOIN " " pc_private ${pc_private} -pthread -lm -l${CMAKE_DL_LIBS})
file(RELATIVE_PATH pc_prefix "/${CMAKE_INSTALL_LIBDIR}/pkgconfig" "/")
string(REGEX REPLACE "/$" "" pc_prefix "${pc_prefix}")
configure_file(tiki.pc.in ${tiki_generated_dir}/tiki.pc @ONLY)
install(FILES ${tiki_generated_dir}/tiki.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
