# The Python package: the extension tiki/_core.abi3.so beside the files of python/tiki, in
# <build>/python, where PYTHONPATH finds it.
#
# One binary for CPython 3.11 and later (the limited API). The library is linked in, so that a wheel is
# one file and its symbols meet no other copy. Python files are links, as headers are: an edit is seen
# at once. -Wpedantic is off for this target alone: CPython's type slots hold functions as void *.
find_package(Python3 3.11 REQUIRED COMPONENTS Interpreter Development.Module)

set(tiki_python_dir ${PROJECT_BINARY_DIR}/python/tiki)
file(GLOB_RECURSE python_files CONFIGURE_DEPENDS RELATIVE ${PROJECT_SOURCE_DIR}/python
     python/tiki/*.py python/tiki/*.pyi python/tiki/py.typed)
file(GLOB_RECURSE stale ${tiki_python_dir}/*.py)
foreach(file ${stale})
  if(IS_SYMLINK ${file} AND NOT EXISTS ${file})
    file(REMOVE ${file})
  endif()
endforeach()
foreach(file ${python_files})
  get_filename_component(folder ${PROJECT_BINARY_DIR}/python/${file} DIRECTORY)
  file(MAKE_DIRECTORY ${folder})
  file(CREATE_LINK ${PROJECT_SOURCE_DIR}/python/${file} ${PROJECT_BINARY_DIR}/python/${file} SYMBOLIC)
endforeach()

add_executable(tkgen_python EXCLUDE_FROM_ALL tools/tkgen_python.c)
target_include_directories(tkgen_python PRIVATE include python)
target_link_libraries(tkgen_python PRIVATE tiki_warnings)
set(surface_source ${tiki_generated_dir}/python_surface.c)
set(surface_stub ${tiki_python_dir}/_core.pyi)
set(surface_template ${PROJECT_SOURCE_DIR}/python/stubs/_core.pyi.in)
add_custom_command(
  OUTPUT ${surface_source} ${surface_stub}
  COMMAND tkgen_python sources ${surface_source}
  COMMAND tkgen_python stubs ${surface_stub} ${surface_template}
  DEPENDS tkgen_python ${surface_template}
  COMMENT "Generating the Python functions from python/surface.def"
  VERBATIM)

file(GLOB extension_sources CONFIGURE_DEPENDS python/src/*.c)
add_library(tiki_python MODULE EXCLUDE_FROM_ALL ${extension_sources} ${surface_source})
set_target_properties(tiki_python PROPERTIES
  OUTPUT_NAME _core PREFIX "" SUFFIX .abi3.so LIBRARY_OUTPUT_DIRECTORY ${tiki_python_dir}
  LINKER_LANGUAGE C)
target_include_directories(tiki_python PRIVATE python/src ${Python3_INCLUDE_DIRS})
target_compile_options(tiki_python PRIVATE -Wall -Wextra $<$<BOOL:${TIKI_WERROR}>:-Werror>
                       -fvisibility=hidden -ffp-contract=off)
# Of a wheel, the library may be that of another build with the same flags (`make wheel`, in a folder of
# its own), which saves compiling it a second time; `pip install .` has none, and compiles it.
set(TIKI_ARCHIVE "" CACHE FILEPATH "libtiki.a for the Python package, instead of this build's own")
if(TIKI_ARCHIVE)
  add_dependencies(tiki_python tiki_headers)
  target_include_directories(tiki_python PRIVATE ${PROJECT_BINARY_DIR}/include include)
  target_link_libraries(tiki_python PRIVATE ${TIKI_ARCHIVE} ${tiki_dependencies})
  set_property(TARGET tiki_python APPEND PROPERTY LINK_DEPENDS ${TIKI_ARCHIVE})
else()
  target_link_libraries(tiki_python PRIVATE tiki_static ${tiki_dependencies})
endif()
target_link_options(tiki_python PRIVATE
                    -Wl,--version-script=${PROJECT_SOURCE_DIR}/cmake/python.map -Wl,--as-needed)
# A wheel runs where nothing was installed: the shared libraries that the extension needs, but those
# of glibc, lie beside it. With RPATH, not RUNPATH, since theirs are found by it too.
if(SKBUILD)
  target_link_options(tiki_python PRIVATE -Wl,--disable-new-dtags)
  set_target_properties(tiki_python PROPERTIES INSTALL_RPATH "$ORIGIN/../tiki.libs")
  configure_file(cmake/bundle.cmake.in ${tiki_generated_dir}/bundle_configured.cmake @ONLY)
  file(GENERATE OUTPUT ${tiki_generated_dir}/bundle.cmake
       INPUT ${tiki_generated_dir}/bundle_configured.cmake)
  install(SCRIPT ${tiki_generated_dir}/bundle.cmake COMPONENT python)
endif()
install(TARGETS tiki_python DESTINATION tiki COMPONENT python OPTIONAL)
install(FILES ${surface_stub} DESTINATION tiki COMPONENT python OPTIONAL)
