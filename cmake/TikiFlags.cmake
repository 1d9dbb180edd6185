# Compiler flags, as the interface target tiki_flags that every target of the tree links.
#
# -ffp-contract=off everywhere: the same expression gives the same bits in every file and on every
# device. The two -fno flags change no result (the library reads neither errno after a math call nor
# the floating-point exception flags) and let the compiler vectorise sqrt and selects.
# Never -march=native: the library runs where it was not built; variants are chosen at run time.
set(CMAKE_C_STANDARD 17)
set(CMAKE_C_STANDARD_REQUIRED ON)
set(CMAKE_C_EXTENSIONS OFF)
set(CMAKE_CXX_STANDARD 17)
set(CMAKE_CXX_EXTENSIONS OFF)

if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "Build type" FORCE)
endif()
set(CMAKE_C_FLAGS_RELEASE "-O2 -DNDEBUG")
set(CMAKE_CXX_FLAGS_RELEASE "-O2 -DNDEBUG")
set(CMAKE_C_FLAGS_DEBUG "-O0 -g")
# Lines are all that a report of a sanitizer shows: the rest of the debug information doubles the time
# of linking and a third of the size. Whoever debugs takes the preset debug. Not optimised, a file
# compiles in a quarter of the time; tiki_optimise_sanitized names those whose running costs more.
set(sanitized_flags "-O0 -gline-tables-only -fno-omit-frame-pointer")
set(CMAKE_C_FLAGS_SANITIZE "${sanitized_flags}" CACHE STRING "Flags of sanitized builds" FORCE)
set(CMAKE_CXX_FLAGS_SANITIZE "${sanitized_flags}" CACHE STRING "Flags of sanitized builds" FORCE)

add_library(tiki_warnings INTERFACE)
target_compile_options(tiki_warnings INTERFACE -Wall -Wextra -Wpedantic
                       $<$<BOOL:${TIKI_WERROR}>:-Werror>)

add_library(tiki_flags INTERFACE)
target_compile_options(tiki_flags INTERFACE -ffp-contract=off -fno-math-errno -fno-trapping-math
                       -fvisibility=hidden)
target_link_libraries(tiki_flags INTERFACE tiki_warnings)

if(TIKI_SANITIZE)
  target_compile_options(tiki_flags INTERFACE -fsanitize=${TIKI_SANITIZE} -fno-sanitize-recover=all)
  target_link_options(tiki_flags INTERFACE -fsanitize=${TIKI_SANITIZE})
  find_program(LLD ld.lld) # links the two hundred programs in half of the time
  if(LLD AND CMAKE_C_COMPILER_ID MATCHES "Clang")
    target_link_options(tiki_flags INTERFACE -fuse-ld=lld -Wl,--threads=1) # the build links several at once
  endif()
endif()
if(TIKI_COVERAGE)
  target_compile_options(tiki_flags INTERFACE --coverage)
  target_link_options(tiki_flags INTERFACE --coverage)
endif()

# tiki_optimise_sanitized(LEVEL PATTERN...): the files of these patterns are optimised in sanitized builds.
function(tiki_optimise_sanitized level)
  file(GLOB sources CONFIGURE_DEPENDS ${ARGN})
  set_property(SOURCE ${sources} APPEND PROPERTY COMPILE_OPTIONS $<$<CONFIG:Sanitize>:${level}>)
endfunction()

# Adds the flags of a file's instruction set, which its name tells, to a list of sources, and drops
# the files of another processor. x86-64 only so far.
function(tiki_set_variant_flags sources_name)
  set(sources ${${sources_name}})
  set(avx2 -mavx2 -mfma -mf16c)
  set(avx512 -mavx512f -mavx512bw -mavx512vl -mavx512dq -mfma -mf16c)
  foreach(variant avx2 avx512)
    set(matching ${sources})
    list(FILTER matching INCLUDE REGEX "_${variant}\\.c$")
    if(NOT matching)
      continue()
    endif()
    if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64)$")
      set_property(SOURCE ${matching} APPEND PROPERTY COMPILE_OPTIONS ${${variant}})
    else()
      list(REMOVE_ITEM sources ${matching})
    endif()
  endforeach()
  set(${sources_name} ${sources} PARENT_SCOPE)
endfunction()
