# Flags of every file, and the helpers that folders use.

# AR-1.7: no contraction, nothing of -ffast-math. A result must not depend on what a compiler fuses.
set(OM_FLAGS -std=c11 -ffp-contract=off -fno-fast-math -fno-math-errno -fno-trapping-math
    -Wall -Wextra -Wpedantic -Wshadow -Wstrict-prototypes -Wmissing-prototypes
    -Wpointer-arith -Wcast-qual -Wwrite-strings -Wvla)
if(OM_WERROR) # our presets and tests; a newer compiler's warning must not break a user's build
  list(APPEND OM_FLAGS -Werror)
endif()
if(OM_SANITIZE)
  list(APPEND OM_FLAGS -fsanitize=${OM_SANITIZE} -fno-omit-frame-pointer -g)
  if(OM_SANITIZE MATCHES "undefined")
    list(APPEND OM_FLAGS -fno-sanitize-recover=all)
  endif()
  add_link_options(-fsanitize=${OM_SANITIZE})
endif()
if(OM_LIBFUZZER) # the library is instrumented, libfuzzer_* programs link its engine
  list(APPEND OM_FLAGS -fsanitize=fuzzer-no-link)
endif()
if(OM_COVERAGE)
  list(APPEND OM_FLAGS --coverage -O0)
  add_link_options(--coverage)
endif()
# The library works in a thread of 64 KiB stack, so no function of src/ may take much of it. Sanitizers pad frames.
set(OM_FRAME_FLAGS)
if(OM_WERROR AND NOT OM_SANITIZE AND NOT OM_COVERAGE AND NOT OM_LIBFUZZER)
  set(OM_FRAME_FLAGS -Wframe-larger-than=4096)
endif()
set(CMAKE_C_FLAGS_RELEASE "-O3 -DNDEBUG")

find_package(Threads REQUIRED)

function(om_compile target)
  target_compile_options(${target} PRIVATE ${OM_FLAGS})
  target_compile_definitions(${target} PRIVATE _GNU_SOURCE $<$<BOOL:${OM_WIDE16}>:OM_WIDE16=1>)
  target_include_directories(${target} PRIVATE ${PROJECT_SOURCE_DIR}/src
                             ${PROJECT_SOURCE_DIR}/include)
endfunction()

# om_folder(name file...): the object library om_<name>, part of the library.
macro(om_folder name)
  add_library(om_${name} OBJECT ${ARGN})
  om_compile(om_${name})
  target_compile_options(om_${name} PRIVATE ${OM_FRAME_FLAGS})
  list(APPEND OM_OBJECTS $<TARGET_OBJECTS:om_${name}>)
  set(OM_OBJECTS ${OM_OBJECTS} PARENT_SCOPE)
endmacro()

function(om_public_target target)
  set_target_properties(${target} PROPERTIES LINKER_LANGUAGE C)
  target_include_directories(${target} PUBLIC $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>
                             $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
  target_link_libraries(${target} PUBLIC m Threads::Threads ${CMAKE_DL_LIBS})
endfunction()
