# All public headers in one folder, <build>/include/tiki: links to the written ones, and the generated
# ones, which tools/tkgen.c makes from the op table.
#
# Links, not copies: an error message or an editor that follows one lands in the file to edit, and
# nothing can be stale. The generator is built for the host without sanitizers, since it runs in
# the middle of the build.
set(tiki_header_dir ${PROJECT_BINARY_DIR}/include/tiki)
set(tiki_generated_dir ${PROJECT_BINARY_DIR}/generated)
file(MAKE_DIRECTORY ${tiki_header_dir} ${tiki_generated_dir}/headers ${tiki_generated_dir}/graph)

file(GLOB stale ${tiki_header_dir}/*)
foreach(header ${stale})
  if(IS_SYMLINK ${header} AND NOT EXISTS ${header})
    file(REMOVE ${header})
  endif()
endforeach()

file(GLOB tiki_headers CONFIGURE_DEPENDS include/tiki/*.h include/tiki/*.def)
foreach(header ${tiki_headers})
  get_filename_component(name ${header} NAME)
  file(CREATE_LINK ${header} ${tiki_header_dir}/${name} SYMBOLIC)
endforeach()

set(tiki_generated_headers)
set(tiki_generated_sources)
file(GLOB tkgen_source CONFIGURE_DEPENDS tools/tkgen.c)
if(tkgen_source)
  add_executable(tkgen ${tkgen_source})
  target_include_directories(tkgen PRIVATE include src)
  target_link_libraries(tkgen PRIVATE tiki_warnings)
  set(tiki_generated_headers ${tiki_header_dir}/ops.h)
  set(tiki_generated_sources ${tiki_generated_dir}/ops_api.c ${tiki_generated_dir}/ops_build.c)
  # copy_if_different keeps the time of a header that came out the same, so nothing is rebuilt.
  add_custom_command(
    OUTPUT ${tiki_generated_headers}
    COMMAND tkgen headers ${tiki_generated_dir}/headers
    COMMAND ${CMAKE_COMMAND} -E copy_if_different ${tiki_generated_dir}/headers/ops.h
            ${tiki_header_dir}/ops.h
    DEPENDS tkgen
    COMMENT "Generating ops.h from the op table"
    VERBATIM)
  add_custom_command(
    OUTPUT ${tiki_generated_sources} ${tiki_generated_dir}/graph/build_gen.h
    COMMAND tkgen sources ${tiki_generated_dir}
    DEPENDS tkgen
    COMMENT "Generating ops_api.c from the op table"
    VERBATIM)
endif()
# The CuTe compiler's worker is a Python program that the library carries as text.
add_custom_command(
  OUTPUT ${tiki_generated_dir}/cute_script.c
  COMMAND ${PROJECT_SOURCE_DIR}/tools/embed.sh ${PROJECT_SOURCE_DIR}/src/target/cute/worker.py
          tk_cute_script target/cute/script.h > ${tiki_generated_dir}/cute_script.c
  DEPENDS ${PROJECT_SOURCE_DIR}/tools/embed.sh ${PROJECT_SOURCE_DIR}/src/target/cute/worker.py
  COMMENT "Generating cute_script.c from worker.py"
  VERBATIM)
# What finds a built kernel without generating its text trusts the sources that would generate it.
file(GLOB_RECURSE generator_sources CONFIGURE_DEPENDS include/tiki/* src/base/* src/layout/* src/kernel/*
     src/library/* src/target/* src/compile/*)
add_custom_command(
  OUTPUT ${tiki_generated_dir}/generator.c
  COMMAND ${PROJECT_SOURCE_DIR}/tools/generator.sh ${PROJECT_SOURCE_DIR}
          > ${tiki_generated_dir}/generator.c
  DEPENDS ${PROJECT_SOURCE_DIR}/tools/generator.sh ${generator_sources}
  COMMENT "Generating generator.c from the sources of targets"
  VERBATIM)
list(APPEND tiki_generated_sources ${tiki_generated_dir}/cute_script.c ${tiki_generated_dir}/generator.c)
add_custom_target(tiki_headers DEPENDS ${tiki_generated_headers} ${tiki_generated_sources})
