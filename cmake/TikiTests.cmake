# Tests, each a process of its own, so that a crash is one failure. Labels: the area (the folder) and
# fast or slow (test_*_slow.c).
#
# A test runs in the root of the sources and finds in its environment: TIKI_BIN (the command),
# TIKI_BUILD (the folder of the build), TMPDIR (a folder there for what the test writes),
# TIKI_KEEP_KERNELS (a folder there for the kernels that it runs or builds).
find_package(PkgConfig REQUIRED)
pkg_check_modules(cmocka REQUIRED IMPORTED_TARGET cmocka)

set(test_tmp ${PROJECT_BINARY_DIR}/tmp)
file(MAKE_DIRECTORY ${test_tmp})
set(test_environment
    "TIKI_BIN=${PROJECT_BINARY_DIR}/bin/tiki" "TIKI_BUILD=${PROJECT_BINARY_DIR}" "TMPDIR=${test_tmp}"
    "ASAN_OPTIONS=detect_leaks=1:detect_stack_use_after_return=1:strict_string_checks=1:allocator_may_return_null=1"
    "UBSAN_OPTIONS=print_stacktrace=1"
    "TSAN_OPTIONS=second_deadlock_stack=1:suppressions=${PROJECT_SOURCE_DIR}/cmake/tsan.supp")

# One build's kernels are enough.
if(NOT TIKI_SANITIZE AND NOT TIKI_COVERAGE)
  list(APPEND test_environment "TIKI_KEEP_KERNELS=${PROJECT_BINARY_DIR}/kernels")
endif()

# ThreadSanitizer needs a memory map without the widest address randomisation of newer kernels, and
# runs only where threads meet: it is ten times slower and would find nothing in pure functions.
set(test_launcher)
set(test_timeout 900) # far over what any needs on a busy machine: it ends what hangs
set(test_areas ".*")
if(TIKI_SANITIZE)
  set(test_timeout 1800)
endif()
if(TIKI_SANITIZE MATCHES "thread")
  set(test_areas "/(runtime|array)/|/test_[^/]*(pool|thread)[^/]*$")
  find_program(SETARCH setarch)
  execute_process(COMMAND ${SETARCH} -R true RESULT_VARIABLE setarch_fails OUTPUT_QUIET ERROR_QUIET)
  if(SETARCH AND NOT setarch_fails)
    set(test_launcher ${SETARCH} -R)
  endif()
endif()

# tiki_add_test(NAME labels... COMMAND command...)
function(tiki_add_test name)
  cmake_parse_arguments(PARSE_ARGV 1 argument "" "" "LABELS;COMMAND")
  add_test(NAME ${name} COMMAND ${argument_COMMAND} WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
  set_tests_properties(${name} PROPERTIES TIMEOUT ${test_timeout} LABELS "${argument_LABELS}"
                       ENVIRONMENT "${test_environment}")
endfunction()

# The stand-in for NVIDIA's driver, which the tests of the CUDA runtime load by its path.
add_library(standin_cuda SHARED tests/runtime/standin/standin_cuda.c)
target_include_directories(standin_cuda PRIVATE include src tests)
target_link_libraries(standin_cuda PRIVATE tiki_flags Threads::Threads)
list(APPEND test_environment "TIKI_STANDIN_CUDA=$<TARGET_FILE:standin_cuda>")

# The stand-in for NVIDIA's CuTe compiler as a library.
add_library(standin_cute SHARED tests/target/cute/standin_compiler.c)
target_link_libraries(standin_cute PRIVATE tiki_flags)
list(APPEND test_environment "TIKI_STANDIN_CUTE=$<TARGET_FILE:standin_cute>")

# The stand-in for NVIDIA's assembler as a library.
add_library(standin_nvptx SHARED tests/target/standin_nvptx.c)
target_link_libraries(standin_nvptx PRIVATE tiki_flags)
list(APPEND test_environment "TIKI_STANDIN_NVPTX=$<TARGET_FILE:standin_nvptx>")

file(GLOB support_sources CONFIGURE_DEPENDS tests/support/*.c)
add_library(tiki_test_support INTERFACE)
target_include_directories(tiki_test_support INTERFACE tests)
target_link_libraries(tiki_test_support INTERFACE tiki_internal PkgConfig::cmocka
                      ${tiki_dependencies})
add_dependencies(tiki_test_support standin_cute standin_cuda standin_nvptx)
# Every kernel that a test runs or builds comes past tests/support/keep_kernels.c.
target_link_options(tiki_test_support INTERFACE -Wl,-u,__wrap_tk_kernel_emulate
                    -Wl,--wrap=tk_kernel_emulate
                    -Wl,--wrap=tk_kernel_build_ptx)
if(support_sources)
  set(op_calls_table ${tiki_generated_dir}/op_calls_table.c)
  add_custom_command(OUTPUT ${op_calls_table} COMMAND tkgen calls ${op_calls_table} DEPENDS tkgen
                     COMMENT "Generating the table of calls" VERBATIM)
  add_library(tiki_test_helpers STATIC ${support_sources} ${op_calls_table})
  target_link_libraries(tiki_test_helpers PRIVATE tiki_test_support)
endif()

# Tests whose own code is what takes long.
tiki_optimise_sanitized(-O1 tests/layout/*.c tests/array/*.c tests/cpu/*.c tests/cpu_ops/*.c
                        tests/support/layout_cases.c tests/support/random_kernel.c)

file(GLOB test_sources CONFIGURE_DEPENDS tests/*/test_*.c)
list(FILTER test_sources EXCLUDE REGEX "^.*/tests/gpu/") # TikiGpu.cmake
list(FILTER test_sources INCLUDE REGEX "${test_areas}")
foreach(source ${test_sources})
  get_filename_component(file ${source} NAME_WE)
  get_filename_component(folder ${source} DIRECTORY)
  get_filename_component(area ${folder} NAME)
  string(REGEX REPLACE "^test_" "" name ${file})
  set(target test_${area}_${name})
  add_executable(${target} ${source})
  set_target_properties(${target} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests)
  if(support_sources)
    target_link_libraries(${target} PRIVATE tiki_test_helpers)
  endif()
  target_link_libraries(${target} PRIVATE tiki_test_support)
  set(speed fast)
  if(name MATCHES "_slow$")
    set(speed slow)
  endif()
  tiki_add_test(${area}.${name} LABELS ${area} ${speed}
                COMMAND ${test_launcher} $<TARGET_FILE:${target}>)
endforeach()

# It waits for hundreds of compilations.
if(TEST target.both_targets)
  set_tests_properties(target.both_targets PROPERTIES RUN_SERIAL TRUE)
endif()

# The longest begin first, so that none runs alone at the end.
foreach(test layout.laws_slow layout.laws_more_slow layout.left_inverse kernel.passes_random library.gemm
             library.rows library.hopper_gemm cpu_ops.ewise cli.resume_train cli.commands nn.trainer
             examples.05_train array.eval graph.grad graph.grad_edges edge.op_calls)
  if(TEST ${test})
    set_tests_properties(${test} PROPERTIES COST 100)
  endif()
endforeach()

# Random calls of every op: here they must not crash; tests/python compares their values.
if(NOT TIKI_SANITIZE MATCHES "thread")
  add_executable(op_calls tests/edge/op_calls.c tests/edge/op_draw.c tests/edge/op_fit.c
                 tests/edge/op_fit_signal.c tests/edge/op_fit_linalg.c tests/edge/op_fit_quant.c)
  set_target_properties(op_calls PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests)
  target_link_libraries(op_calls PRIVATE tiki_test_helpers tiki_test_support)
  tiki_add_test(edge.op_calls LABELS edge fast COMMAND $<TARGET_FILE:op_calls> --calls 40000)
endif()

# What fuzzing found once stays found: the kept inputs run as a plain test.
if(NOT TIKI_SANITIZE MATCHES "thread")
  file(GLOB fuzz_sources CONFIGURE_DEPENDS tests/fuzz/fuzz_*.c)
  foreach(source ${fuzz_sources})
    get_filename_component(file ${source} NAME_WE)
    string(REGEX REPLACE "^fuzz_" "" name ${file})
    file(GLOB corpus CONFIGURE_DEPENDS tests/fuzz/corpus/${name}/*)
    if(corpus)
      add_executable(replay_${name} ${source} tools/fuzz_replay.c)
      set_target_properties(replay_${name} PROPERTIES
                            RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests)
      target_include_directories(replay_${name} PRIVATE tests)
      target_link_libraries(replay_${name} PRIVATE tiki_internal ${tiki_dependencies})
      if(support_sources)
        target_link_libraries(replay_${name} PRIVATE tiki_test_helpers)
      endif()
      tiki_add_test(fuzz.${name} LABELS fuzz fast
                    COMMAND $<TARGET_FILE:replay_${name}> tests/fuzz/corpus/${name})
    endif()
  endforeach()

  foreach(example ${tiki_examples})
    tiki_add_test(examples.${example} LABELS examples fast
                  COMMAND tools/check_example.sh $<TARGET_FILE:example_${example}>
                          examples/expected/${example}.txt)
  endforeach()
endif()

# Checks of the tree itself need no sanitizer.
if(NOT TIKI_SANITIZE AND NOT TIKI_COVERAGE)
  if(TIKI_HEADER_TESTS)
    tiki_add_test(headers.c17 LABELS headers fast
                  COMMAND tools/check_headers.sh ${PROJECT_BINARY_DIR}/include
                          ${CMAKE_C_COMPILER} -x c -std=c17)
    if(CMAKE_CXX_COMPILER)
      tiki_add_test(headers.cxx17 LABELS headers fast
                    COMMAND tools/check_headers.sh ${PROJECT_BINARY_DIR}/include
                            ${CMAKE_CXX_COMPILER} -x c++ -std=c++17)
    endif()
  endif()
  tiki_add_test(tools.includes LABELS tools fast COMMAND tools/check_includes.sh)
  file(GLOB script_tests CONFIGURE_DEPENDS tests/*/test_*.sh)
  foreach(script ${script_tests})
    get_filename_component(file ${script} NAME_WE)
    get_filename_component(folder ${script} DIRECTORY)
    get_filename_component(area ${folder} NAME)
    string(REGEX REPLACE "^test_" "" name ${file})
    set(speed fast)
    if(name MATCHES "_slow$")
      set(speed slow)
    endif()
    tiki_add_test(${area}.${name} LABELS ${area} ${speed} COMMAND ${script})
  endforeach()
  tiki_add_test(install.consumer LABELS install slow
                COMMAND tools/check_install.sh ${PROJECT_BINARY_DIR})
endif()
