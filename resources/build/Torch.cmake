# SPDX-License-Identifier: GPL-3.0-or-later
# The imported target ponderscope::torch, made from what lies on disk. Torch's own CMake package is not used: it fails on
# machines without a CUDA toolkit and probes for GPUs.
#
# Looked for, in this order: Torch_DIR or LIBTORCH (an unpacked LibTorch or site-packages/torch), PONDERSCOPE_DEPS
# (default: the user's cache folder), where ./run installs the wheel.

if(DEFINED ENV{PONDERSCOPE_DEPS} AND NOT "$ENV{PONDERSCOPE_DEPS}" STREQUAL "")
  set(ponderscope_deps "$ENV{PONDERSCOPE_DEPS}")
elseif(DEFINED ENV{XDG_CACHE_HOME} AND NOT "$ENV{XDG_CACHE_HOME}" STREQUAL "")
  set(ponderscope_deps "$ENV{XDG_CACHE_HOME}/ponderscope")
else()
  set(ponderscope_deps "$ENV{HOME}/.cache/ponderscope")
endif()

set(ponderscope_torch_candidates "")
foreach(hint "${Torch_DIR}" "$ENV{Torch_DIR}" "${LIBTORCH}" "$ENV{LIBTORCH}")
  if(hint)
    # Torch_DIR conventionally names share/cmake/Torch inside the tree.
    list(APPEND ponderscope_torch_candidates "${hint}" "${hint}/../../.." "${hint}/torch")
  endif()
endforeach()
list(APPEND ponderscope_torch_candidates "${ponderscope_deps}/torch-${PONDERSCOPE_TORCH_VERSION}/torch")

set(ponderscope_torch_root "")
foreach(candidate IN LISTS ponderscope_torch_candidates)
  if(EXISTS "${candidate}/include/ATen/ATen.h" AND EXISTS "${candidate}/lib/libtorch_cpu.so")
    get_filename_component(ponderscope_torch_root "${candidate}" ABSOLUTE)
    break()
  endif()
endforeach()
if(NOT ponderscope_torch_root)
  string(JOIN "\n  " tried ${ponderscope_torch_candidates})
  message(FATAL_ERROR
    "LibTorch was not found. Looked in:\n  ${tried}\nRun ./run, which installs it, or set Torch_DIR to an unpacked LibTorch "
    "${PONDERSCOPE_TORCH_VERSION}, or configure with -DPONDERSCOPE_ENGINE=OFF.")
endif()
message(STATUS "LibTorch: ${ponderscope_torch_root}")

set(torch_lib "${ponderscope_torch_root}/lib")
get_filename_component(ponderscope_site_packages "${ponderscope_torch_root}/.." ABSOLUTE)
set(ponderscope_nvidia "${ponderscope_site_packages}/nvidia/cu13")

add_library(ponderscope_torch INTERFACE)
add_library(ponderscope::torch ALIAS ponderscope_torch)
target_include_directories(ponderscope_torch SYSTEM INTERFACE
  "${ponderscope_torch_root}/include" "${ponderscope_torch_root}/include/torch/csrc/api/include")
# CUDA's headers: the wheels of torch have them, but for those in crt/, which come with the compiler.
set(ponderscope_nvcc_wheels "${ponderscope_deps}/nvcc-${PONDERSCOPE_CUDA_NVCC_VERSION}/nvidia/cu13")
find_program(ponderscope_nvcc nvcc HINTS "${ponderscope_nvcc_wheels}/bin" NO_DEFAULT_PATH) # of the CUDA that torch was built with
find_program(ponderscope_nvcc nvcc PATHS /usr/local/cuda/bin)
set(ponderscope_cuda_toolkit "")
if(ponderscope_nvcc)
  file(REAL_PATH "${ponderscope_nvcc}" ponderscope_cuda_toolkit)
  cmake_path(GET ponderscope_cuda_toolkit PARENT_PATH ponderscope_cuda_toolkit)
  cmake_path(GET ponderscope_cuda_toolkit PARENT_PATH ponderscope_cuda_toolkit)
endif()
set(ponderscope_cuda_hints "${ponderscope_nvidia}/include" "${ponderscope_cuda_toolkit}/include"
  "${ponderscope_cuda_toolkit}/targets/${CMAKE_SYSTEM_PROCESSOR}-linux/include" /usr/local/cuda/include)
find_path(ponderscope_cuda_runtime cuda_runtime.h HINTS ${ponderscope_cuda_hints} NO_CACHE)
find_path(ponderscope_cuda_crt crt/host_config.h HINTS ${ponderscope_cuda_hints} NO_CACHE)
target_link_directories(ponderscope_torch INTERFACE "${torch_lib}")
# An absolute path each, so that a LibTorch of the system is never picked up by accident. The C++ library goes first: the
# wheels export parts of an older std::filesystem, which would otherwise be called in its place (remove_all jumps to null).
target_link_libraries(ponderscope_torch INTERFACE "-Wl,--no-as-needed" -lstdc++ "${torch_lib}/libtorch_cpu.so" "${torch_lib}/libc10.so"
  "-Wl,--as-needed")
# The CUDA half, for the one library that needs it (core/kernels/cuda).
set(PONDERSCOPE_TORCH_HAS_CUDA OFF)
if(EXISTS "${torch_lib}/libtorch_cuda.so" AND ponderscope_cuda_runtime AND ponderscope_cuda_crt)
  set(PONDERSCOPE_TORCH_HAS_CUDA ON)
  add_library(ponderscope_torch_cuda INTERFACE)
  add_library(ponderscope::torch_cuda ALIAS ponderscope_torch_cuda)
  target_include_directories(ponderscope_torch_cuda SYSTEM INTERFACE "${ponderscope_cuda_runtime}" "${ponderscope_cuda_crt}")
  target_link_libraries(ponderscope_torch_cuda INTERFACE ponderscope::torch "-Wl,--no-as-needed" "${torch_lib}/libtorch_cuda.so"
    "${torch_lib}/libc10_cuda.so" "-Wl,--as-needed")
endif()
target_link_options(ponderscope_torch INTERFACE "-Wl,-rpath,${torch_lib}" "-Wl,-rpath-link,${torch_lib}")
foreach(folder cu13 cudnn cusparselt nccl nvshmem)
  if(EXISTS "${ponderscope_site_packages}/nvidia/${folder}/lib")
    target_link_options(ponderscope_torch INTERFACE "-Wl,-rpath-link,${ponderscope_site_packages}/nvidia/${folder}/lib")
  endif()
endforeach()

# at::parallel_for is an inline function that runs on one thread unless it is compiled with OpenMP. The runtime must be the
# very one that LibTorch uses: two of them in a program would each start a thread for every core.
target_compile_options(ponderscope_torch INTERFACE "$<$<COMPILE_LANGUAGE:CXX>:-fopenmp>")
target_link_options(ponderscope_torch INTERFACE "$<$<CXX_COMPILER_ID:Clang>:-fopenmp>") # clang calls its own all the same
file(GLOB ponderscope_torch_openmp "${torch_lib}/libgomp*.so*")
if(ponderscope_torch_openmp)
  list(GET ponderscope_torch_openmp 0 ponderscope_torch_openmp)
  target_link_libraries(ponderscope_torch INTERFACE "${ponderscope_torch_openmp}")
else()
  target_link_libraries(ponderscope_torch INTERFACE gomp)
endif()
