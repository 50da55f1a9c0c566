# SPDX-License-Identifier: GPL-3.0-or-later
# What every target of ours is compiled with, and the two functions that make targets.

# PONDERSCOPE_TORCH_VERSION and its neighbours.
file(STRINGS "${CMAKE_SOURCE_DIR}/resources/build/versions.env" ponderscope_versions REGEX "^[A-Z_]+=")
foreach(line IN LISTS ponderscope_versions)
  string(REGEX MATCH "^([A-Z_]+)=(.*)$" _ "${line}")
  set(PONDERSCOPE_${CMAKE_MATCH_1} "${CMAKE_MATCH_2}")
endforeach()

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/bin")
set(CMAKE_LIBRARY_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/lib")
# Programs open libraries of ours by name: in lib beside bin in a build tree, beside the engine where it is installed. CMake would pad
# a run path that it replaces when it installs, and an empty entry of a run path is the current folder.
set(CMAKE_INSTALL_RPATH "$ORIGIN;$ORIGIN/../lib")
set(CMAKE_BUILD_WITH_INSTALL_RPATH ON)

find_program(CCACHE_PROGRAM ccache)
if(CCACHE_PROGRAM)
  # Precompiled headers are cacheable only if ccache may ignore their time stamps and macros.
  set(ponderscope_launcher
      "${CMAKE_COMMAND};-E;env;CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime;CCACHE_BASEDIR=${CMAKE_SOURCE_DIR};CCACHE_NOHASHDIR=1;${CCACHE_PROGRAM}")
  set(CMAKE_CXX_COMPILER_LAUNCHER "${ponderscope_launcher}")
  set(CMAKE_CUDA_COMPILER_LAUNCHER "${ponderscope_launcher}")
endif()

# Linked by every target of ours, never by what we only use.
add_library(ponderscope_options INTERFACE)
target_compile_options(ponderscope_options INTERFACE
  $<$<COMPILE_LANGUAGE:CXX>:-Wall -Wextra -Wpedantic -Wshadow -Wnon-virtual-dtor -Woverloaded-virtual -Wcast-align
  -Wextra-semi -Wimplicit-fallthrough>)
if(PONDERSCOPE_WERROR)
  target_compile_options(ponderscope_options INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-Werror>)
endif()
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # At -O3 GCC 12 and 13 follow paths through the standard library that cannot be taken (GCC bugs 105651, 107852) and warn
  # about copies there. These warnings stay on where they are right, at -O2 (dev).
  target_compile_options(ponderscope_options INTERFACE
    "$<$<AND:$<COMPILE_LANGUAGE:CXX>,$<CONFIG:Release>>:-Wno-restrict;-Wno-maybe-uninitialized;-Wno-array-bounds;-Wno-stringop-overflow;-Wno-stringop-overread;-Wno-free-nonheap-object>")
endif()
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_UNITY_BUILD)
  # GCC takes what a unity source includes for headers, whose classes ought not to have members of anonymous types.
  target_compile_options(ponderscope_options INTERFACE -Wno-subobject-linkage)
endif()
if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
  # std::stable_sort of GCC 12's library uses what that library itself calls deprecated.
  target_compile_options(ponderscope_options INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-Wno-error=deprecated-declarations>)
  if(CMAKE_CXX_COMPILER_VERSION VERSION_GREATER_EQUAL 18)
    # LibTorch's templates are named as GCC and earlier clangs name them.
    target_compile_options(ponderscope_options INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-fclang-abi-compat=17>)
  endif()
endif()
if(CCACHE_PROGRAM AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  target_compile_options(ponderscope_options INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-fpch-preprocess>)
endif()
if(PONDERSCOPE_ASSERTIONS)
  target_compile_options(ponderscope_options INTERFACE -UNDEBUG)
  target_compile_definitions(ponderscope_options INTERFACE _GLIBCXX_ASSERTIONS)
endif()
if(PONDERSCOPE_SANITIZE)
  list(JOIN PONDERSCOPE_SANITIZE "," ponderscope_sanitizers)
  target_compile_options(ponderscope_options INTERFACE
    $<$<COMPILE_LANGUAGE:CXX>:-fsanitize=${ponderscope_sanitizers} -fno-sanitize-recover=all -fno-omit-frame-pointer>)
  target_link_options(ponderscope_options INTERFACE -fsanitize=${ponderscope_sanitizers})
endif()

# Sources that only call the libraries: what takes long is not in them, but compiling them at -O3 does.
add_library(ponderscope_glue_options INTERFACE)
target_compile_options(ponderscope_glue_options INTERFACE $<$<CONFIG:Release>:-O1>)

include(PrecompiledHeaders)

# ponderscope_library(NAME SOURCES ... LINK ...): one static library a folder. Headers are included as "core/...", from the
# root, so that a reader sees where a thing lives and an arrow against the layering shows in the include line. With
# CMAKE_UNITY_BUILD eight sources of a library are one translation unit: names in their anonymous namespaces differ.
function(ponderscope_library name)
  cmake_parse_arguments(ARG "" "" "SOURCES;LINK;PRIVATE_LINK" ${ARGN})
  add_library(${name} STATIC ${ARG_SOURCES})
  target_include_directories(${name} PUBLIC "${CMAKE_SOURCE_DIR}")
  target_link_libraries(${name} PUBLIC ${ARG_LINK} PRIVATE ponderscope_options ${ARG_PRIVATE_LINK})
  ponderscope_precompile(${name} library)
endfunction()

# ponderscope_embed(HEADER NAMESPACE FILE ...): writes embedded.cpp into the build folder. It defines the content of each text file as a
# `const char* const` with the file's name without the ending; HEADER declares them.
function(ponderscope_embed header namespace)
  set(source "#include \"${header}\"\nnamespace ${namespace} {\n")
  foreach(file ${ARGN})
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${file}")
    file(READ "${file}" text)
    get_filename_component(name "${file}" NAME_WE)
    string(APPEND source "const char* const ${name} = R\"embedded(${text})embedded\";\n")
  endforeach()
  file(GENERATE OUTPUT "${CMAKE_CURRENT_BINARY_DIR}/embedded.cpp" CONTENT "${source}} // namespace ${namespace}\n")
endfunction()

# ponderscope_gtest(NAME SOURCES ... LINK ... [LABELS ...]): one GoogleTest program, run by ctest as one test.
function(ponderscope_gtest name)
  cmake_parse_arguments(ARG "" "" "SOURCES;LINK;LABELS" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  target_include_directories(${name} PRIVATE "${CMAKE_SOURCE_DIR}")
  target_link_libraries(${name} PRIVATE ponderscope_options ponderscope_glue_options ${ARG_LINK} ponderscope_test_support GTest::gtest_main)
  ponderscope_precompile(${name} test)
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/tests")
  add_test(NAME ${name} COMMAND ${name})
  set_tests_properties(${name} PROPERTIES LABELS "${ARG_LABELS}")
endfunction()

# ponderscope_qtest(NAME SOURCES ... LINK ...): one Qt Test program, run without a display.
function(ponderscope_qtest name)
  cmake_parse_arguments(ARG "" "" "SOURCES;LINK;LABELS" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  set_target_properties(${name} PROPERTIES AUTOMOC ON RUNTIME_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/tests")
  target_include_directories(${name} PRIVATE "${CMAKE_SOURCE_DIR}")
  target_link_libraries(${name} PRIVATE ponderscope_options ponderscope_glue_options ${ARG_LINK} Qt6::Test)
  ponderscope_precompile(${name} test)
  add_test(NAME ${name} COMMAND ${name})
  set_tests_properties(${name} PROPERTIES ENVIRONMENT "QT_QPA_PLATFORM=offscreen;${ponderscope_test_locale}" LABELS "${ARG_LABELS}")
endfunction()
