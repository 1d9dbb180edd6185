# The library: libtiki.so (public API only) and libtiki.a, from one set of objects.
find_package(PkgConfig REQUIRED)
find_package(Threads REQUIRED)
set(tiki_pkg_modules kissfft-float jansson libzip)
foreach(module ${tiki_pkg_modules})
  pkg_check_modules(${module} REQUIRED IMPORTED_TARGET ${module})
  list(APPEND tiki_dependencies PkgConfig::${module})
endforeach()
# OpenBLAS is opened when it is needed (src/cpu/blas.c): its header is used, and nothing is linked.
# Linked as well, ThreadSanitizer sees it twice and stops.
pkg_check_modules(openblas REQUIRED openblas)
list(APPEND tiki_dependencies Threads::Threads m ${CMAKE_DL_LIBS})

# In the order of the layers: each may include only what stands before it, and not all of that
# (tools/check_includes.sh knows which).
set(tiki_modules base layout runtime graph array cpu kernel target library compile io nn)
set(tiki_sources)
foreach(module ${tiki_modules})
  file(GLOB module_sources CONFIGURE_DEPENDS src/${module}/*.c src/${module}/*/*.c)
  list(APPEND tiki_sources ${module_sources})
endforeach()
tiki_set_variant_flags(tiki_sources)

# Kernels gain from -O3; the rest would only grow.
file(GLOB kernel_sources src/cpu/*.c)
if(kernel_sources)
  set_property(SOURCE ${kernel_sources} APPEND PROPERTY COMPILE_OPTIONS $<$<CONFIG:Release>:-O3>)
endif()

# Of a sanitized build, where the tests spend their time. Threads meet in few tests.
tiki_optimise_sanitized(-O1 src/cpu/[!b]*.c src/cpu/b[!o]*.c)
tiki_optimise_sanitized(-O2 src/cpu/gemm_*.c)
if(NOT TIKI_SANITIZE MATCHES "thread")
  tiki_optimise_sanitized(-O1 src/base/*.c src/kernel/emu*.c src/layout/*.c)
endif()

# What guides the fuzzers is not needed where no input decides: the numbers of src/cpu stay fast for
# the tests, which link the same objects.
if(TIKI_FUZZ)
  set(guided ${tiki_sources})
  list(FILTER guided EXCLUDE REGEX "/src/cpu/")
  set_property(SOURCE ${guided} APPEND PROPERTY COMPILE_OPTIONS -fsanitize=fuzzer-no-link)
endif()

add_library(tiki_objects OBJECT ${tiki_sources} ${tiki_generated_sources})
add_dependencies(tiki_objects tiki_headers)
set_target_properties(tiki_objects PROPERTIES POSITION_INDEPENDENT_CODE ON)
target_include_directories(tiki_objects PRIVATE ${PROJECT_BINARY_DIR}/include include src
                           ${tiki_generated_dir})
target_include_directories(tiki_objects SYSTEM PRIVATE ${openblas_INCLUDE_DIRS})
target_link_libraries(tiki_objects PRIVATE tiki_flags ${tiki_dependencies})

set(export_map ${PROJECT_SOURCE_DIR}/cmake/tiki.map)
add_library(tiki SHARED $<TARGET_OBJECTS:tiki_objects>)
target_link_libraries(tiki PRIVATE $<BUILD_INTERFACE:tiki_flags> ${tiki_dependencies})
target_link_options(tiki PRIVATE -Wl,--version-script=${export_map})
if(NOT TIKI_SANITIZE)
  target_link_options(tiki PRIVATE -Wl,--no-undefined -Wl,--as-needed)
endif()
set_target_properties(tiki PROPERTIES VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR}
                      LINK_DEPENDS ${export_map} LINKER_LANGUAGE C)

add_library(tiki_static STATIC $<TARGET_OBJECTS:tiki_objects>)
target_link_libraries(tiki_static PRIVATE $<BUILD_INTERFACE:tiki_flags> ${tiki_dependencies})
set_target_properties(tiki_static PROPERTIES OUTPUT_NAME tiki EXPORT_NAME static LINKER_LANGUAGE C)

foreach(library tiki tiki_static)
  add_dependencies(${library} tiki_headers)
  target_include_directories(${library} INTERFACE
    $<BUILD_INTERFACE:${PROJECT_BINARY_DIR}/include> $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>
    $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
endforeach()
add_library(tiki::tiki ALIAS tiki)

# For programs of this tree that also reach internals.
add_library(tiki_internal INTERFACE)
target_include_directories(tiki_internal INTERFACE src ${tiki_generated_dir})
target_include_directories(tiki_internal SYSTEM INTERFACE ${openblas_INCLUDE_DIRS})
target_link_libraries(tiki_internal INTERFACE tiki_static tiki_flags)
