# Install rules: libraries, headers, CMake package, pkg-config file.
include(CMakePackageConfigHelpers)
set(om_installed onemodel_static)
if(OM_SHARED)
  list(APPEND om_installed onemodel)
endif()
install(TARGETS ${om_installed} EXPORT OneModelTargets
        ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(DIRECTORY include/ DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN "*.h*")
install(EXPORT OneModelTargets NAMESPACE OneModel:: FILE OneModelTargets.cmake
        DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/OneModel)
configure_package_config_file(cmake/OneModelConfig.cmake.in OneModelConfig.cmake
                              INSTALL_DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/OneModel)
write_basic_package_version_file(OneModelConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/OneModelConfig.cmake
              ${CMAKE_CURRENT_BINARY_DIR}/OneModelConfigVersion.cmake
        DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/OneModel)
# Relative to the file itself, so that `cmake --install --prefix` may choose another place.
file(RELATIVE_PATH OM_PC_PREFIX ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig ${CMAKE_INSTALL_PREFIX})
# Without the shared library the plain line links the static one, which needs more. A plug-in that
# contains the static library must stay loaded: its threads outlive dlclose.
set(OM_PC_LIBS)
set(OM_PC_NODELETE)
if(CMAKE_SYSTEM_NAME STREQUAL "Linux")
  set(OM_PC_NODELETE " -Wl,-z,nodelete")
endif()
if(NOT OM_SHARED)
  set(OM_PC_LIBS " -lm -pthread -ldl${OM_PC_NODELETE}")
endif()
configure_file(cmake/onemodel.pc.in onemodel.pc @ONLY)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/onemodel.pc
        DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
