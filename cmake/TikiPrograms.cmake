# The command build/bin/tiki, the benches and the examples.
file(GLOB cli_sources CONFIGURE_DEPENDS src/cli/*.c)
if(EXISTS ${PROJECT_SOURCE_DIR}/src/cli/main.c)
  add_executable(tiki_cli ${cli_sources})
  set_target_properties(tiki_cli PROPERTIES OUTPUT_NAME tiki INSTALL_RPATH "$ORIGIN/../${CMAKE_INSTALL_LIBDIR}")
  target_include_directories(tiki_cli PRIVATE src)
  target_link_libraries(tiki_cli PRIVATE tiki tiki_flags PkgConfig::jansson PkgConfig::libzip Threads::Threads m
                        ${CMAKE_DL_LIBS})
endif()

# What `make` builds: everything a user of the library needs and nothing else.
add_custom_target(core DEPENDS tiki tiki_static tiki_headers)
if(EXISTS ${PROJECT_SOURCE_DIR}/src/cli/main.c)
  add_dependencies(core tiki_cli)
endif()

# A build made to find faults measures nothing and, for threads, runs no example.
if(NOT TIKI_SANITIZE AND NOT TIKI_COVERAGE)
  file(GLOB bench_sources CONFIGURE_DEPENDS bench/bench_*.c)
endif()
foreach(source ${bench_sources})
  get_filename_component(name ${source} NAME_WE)
  add_executable(${name} ${source})
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bench)
  target_link_libraries(${name} PRIVATE tiki_internal ${tiki_dependencies})
endforeach()

# Examples see what a user sees: the shared library, the public headers, warnings as errors.
set(example_patterns examples/[0-9][0-9]_*.c)
if(CMAKE_CXX_COMPILER)
  list(APPEND example_patterns examples/[0-9][0-9]_*.cpp)
endif()
if(NOT TIKI_SANITIZE MATCHES "thread")
  file(GLOB example_sources CONFIGURE_DEPENDS ${example_patterns})
endif()
set(tiki_examples)
foreach(source ${example_sources})
  get_filename_component(name ${source} NAME_WE)
  add_executable(example_${name} ${source})
  set_target_properties(example_${name} PROPERTIES OUTPUT_NAME ${name}
                        RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/examples)
  target_compile_options(example_${name} PRIVATE -Werror)
  target_link_libraries(example_${name} PRIVATE tiki tiki_flags m)
  list(APPEND tiki_examples ${name})
endforeach()
