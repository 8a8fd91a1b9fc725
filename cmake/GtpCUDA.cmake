# CUDA 13, for GTP_ENABLE_CUDA=ON.
if(NOT CMAKE_CUDA_COMPILER AND NOT DEFINED ENV{CUDACXX})
  find_program(GTP_NVCC nvcc HINTS /usr/local/cuda/bin)
  if(NOT GTP_NVCC)
    message(FATAL_ERROR "GTP_ENABLE_CUDA needs nvcc of CUDA 13, which was not found: install the CUDA "
      "toolkit and set CMAKE_CUDA_COMPILER, or leave GTP_ENABLE_CUDA off")
  endif()
  set(CMAKE_CUDA_COMPILER ${GTP_NVCC})
endif()
# nvcc takes g++, whatever compiles the rest.
if(NOT CMAKE_CUDA_HOST_COMPILER AND NOT DEFINED ENV{CUDAHOSTCXX})
  find_program(GTP_CUDA_HOST_COMPILER g++ REQUIRED)
  set(CMAKE_CUDA_HOST_COMPILER ${GTP_CUDA_HOST_COMPILER})
endif()
set(CMAKE_CUDA_ARCHITECTURES ${GTP_CUDA_ARCHITECTURES})
enable_language(CUDA)
find_package(CUDAToolkit 13 REQUIRED)
