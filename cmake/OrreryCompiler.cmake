# How our own code is compiled. Warnings are errors on it, and on nothing that we only include.
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)

# What is hot here is libtorch's and the kernel's; -O3 of ours would only cost build time.
set(CMAKE_CXX_FLAGS_RELEASE "-O2 -DNDEBUG")

if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "" FORCE)
endif()
if(ORRERY_ASSERTIONS)
  string(REPLACE "-DNDEBUG" "" CMAKE_CXX_FLAGS_RELWITHDEBINFO "${CMAKE_CXX_FLAGS_RELWITHDEBINFO}")
endif()

find_program(CCACHE ccache)
if(CCACHE)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CCACHE})
  set(CMAKE_C_COMPILER_LAUNCHER ${CCACHE})
  # Precompiled headers and ccache get along only with these two.
  set(ENV{CCACHE_SLOPPINESS} pch_defines,time_macros)
endif()

add_library(orrery_warnings INTERFACE)
target_compile_options(orrery_warnings INTERFACE
  -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wnon-virtual-dtor -Werror)
# GCC 12 warns of overlaps inside its own std::string (GCC bug 105651).
if(CMAKE_CXX_COMPILER_ID STREQUAL GNU AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  target_compile_options(orrery_warnings INTERFACE -Wno-restrict)
endif()

if(ORRERY_SANITIZER)
  add_compile_options(-fsanitize=${ORRERY_SANITIZER} -fno-omit-frame-pointer)
  add_link_options(-fsanitize=${ORRERY_SANITIZER})
endif()
