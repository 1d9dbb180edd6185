# What runs on a card: tests/gpu/test_*.c and bench/gpu_*.c, built everywhere, into <build>/gpu.
#
# They need the driver only when they run; without a card they say so and end with code 77, which
# counts as skipped. They are linked against what they use alone, so that the folder can be taken to
# a machine that has a card and no build.
file(GLOB gpu_tests CONFIGURE_DEPENDS tests/gpu/test_*.c)
file(GLOB gpu_benches CONFIGURE_DEPENDS bench/gpu_*.c)
add_custom_target(gpu)
foreach(source ${gpu_tests} ${gpu_benches})
  get_filename_component(target ${source} NAME_WE)
  string(REGEX REPLACE "^test_" "test_gpu_" target ${target})
  add_executable(${target} ${source})
  set_target_properties(${target} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/gpu
                        BUILD_RPATH "\$ORIGIN")
  target_include_directories(${target} PRIVATE tests)
  target_link_options(${target} PRIVATE -Wl,--as-needed)
  target_link_libraries(${target} PRIVATE tiki_internal ${tiki_dependencies})
  add_dependencies(gpu ${target})
  if(target MATCHES "^test_gpu_")
    target_link_libraries(${target} PRIVATE PkgConfig::cmocka)
    string(REPLACE "test_gpu_" "" name ${target})
    tiki_add_test(gpu.${name} LABELS gpu fast COMMAND $<TARGET_FILE:${target}>)
    set_tests_properties(gpu.${name} PROPERTIES SKIP_RETURN_CODE 77)
  endif()
endforeach()
