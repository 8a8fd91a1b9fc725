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

# Headers alone: the library is loaded when a plan needs it.
find_program(GTP_PYTHON python3)
set(gtp_site_packages "")
if(GTP_PYTHON)
  execute_process(COMMAND ${GTP_PYTHON} -c "import sysconfig; print(sysconfig.get_path('purelib'))"
    OUTPUT_VARIABLE gtp_site_packages OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
endif()
find_path(GTP_CUDNN_INCLUDE_DIR cudnn.h
  HINTS ${CUDAToolkit_INCLUDE_DIRS} ${gtp_site_packages}/nvidia/cudnn/include)
if(NOT GTP_CUDNN_INCLUDE_DIR)
  message(FATAL_ERROR "GTP_ENABLE_CUDA needs the headers of cuDNN 9 (cudnn.h), which were not found: "
    "install cuDNN, or the Python package nvidia-cudnn-cu13, or set GTP_CUDNN_INCLUDE_DIR")
endif()
find_path(GTP_CUDNN_FRONTEND_INCLUDE_DIR cudnn_frontend.h HINTS ${gtp_site_packages}/include)
if(NOT GTP_CUDNN_FRONTEND_INCLUDE_DIR)
  message(FATAL_ERROR "GTP_ENABLE_CUDA needs the C++ headers of cudnn-frontend (cudnn_frontend.h), which "
    "were not found: install the Python package nvidia-cudnn-frontend (pip install --no-deps "
    "nvidia-cudnn-frontend), or set GTP_CUDNN_FRONTEND_INCLUDE_DIR to its include folder")
endif()
