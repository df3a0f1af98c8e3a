# package_architectures(OUT CODES): CMAKE_CUDA_ARCHITECTURES of a program that runs on all GPUs of compute capability
# 7.5 and later: machine code for the capabilities that nvcc knows, and PTX of the newest, which drivers compile for
# later GPUs. CODES is what `nvcc --list-gpu-code` prints, as a list. A GPU of 8.7 or 10.3 runs the code of 8.6 or 10.0.
function(package_architectures out codes)
  set(architectures "")
  foreach(capability 75 80 86 89 90 100 120)
    if("sm_${capability}" IN_LIST codes)
      list(APPEND architectures ${capability}-real)
      set(newest ${capability})
    endif()
  endforeach()
  if(NOT architectures)
    message(FATAL_ERROR "nvcc --list-gpu-code lists no compute capability that the CUDA backend runs on")
  endif()
  set(${out} "${architectures};${newest}-virtual" PARENT_SCOPE)
endfunction()
