# SPDX-License-Identifier: GPL-3.0-or-later
# cmake --install BUILD, and two packages by cpack: `desktop` to look (Qt, no LibTorch), `engine` to compute and for servers (no
# Qt). The programs' own install lines stand with them.
set(install_sources "${CMAKE_SOURCE_DIR}/resources/install")
if(PONDERSCOPE_DESKTOP)
  install(FILES "${install_sources}/ponderscope-desktop.desktop" DESTINATION share/applications COMPONENT desktop)
  install(FILES "${install_sources}/ponderscope-mime.xml" DESTINATION share/mime/packages RENAME ponderscope.xml COMPONENT desktop)
  install(FILES "${CMAKE_SOURCE_DIR}/resources/icons/ponderscope.svg" DESTINATION share/icons/hicolor/scalable/apps
          COMPONENT desktop)
endif()

# The manual and the completion are written from the verbs' own --help, which the engine's verbs must be there for.
if(PONDERSCOPE_ENGINE)
  find_package(Python3 REQUIRED COMPONENTS Interpreter)
  set(pages "${CMAKE_BINARY_DIR}/pages")
  install(CODE "execute_process(COMMAND \"${Python3_EXECUTABLE}\" \"${install_sources}/command_pages.py\"
    \"${CMAKE_BINARY_DIR}/bin/ponderscope\" \"${pages}\" COMMAND_ERROR_IS_FATAL ANY)" COMPONENT engine)
  install(DIRECTORY "${pages}/man1" DESTINATION share/man COMPONENT engine)
  install(FILES "${pages}/bash-completion/ponderscope" DESTINATION share/bash-completion/completions COMPONENT engine)
  # What help and manual call resources/docs.
  install(DIRECTORY "${CMAKE_SOURCE_DIR}/resources/docs/" DESTINATION share/doc/ponderscope COMPONENT engine)
  install(FILES "${CMAKE_SOURCE_DIR}/app/python/ponderscope/schema.sql" "${CMAKE_SOURCE_DIR}/app/python/ponderscope/annotations.sql"
          DESTINATION share/doc/ponderscope COMPONENT engine)
  # The welcome page looks for them there; a checkpoint is of use with the engine alone.
  install(DIRECTORY "${CMAKE_SOURCE_DIR}/sample_models" DESTINATION share/ponderscope COMPONENT engine)
endif()

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME ponderscope)
set(CPACK_PACKAGE_CONTACT "The Ponderscope developers")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "${PROJECT_DESCRIPTION}")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_DESKTOP_PACKAGE_NAME ponderscope-desktop)
set(CPACK_COMPONENT_DESKTOP_DESCRIPTION "The window: looks at recorded traces. Needs no LibTorch.")
set(CPACK_DEBIAN_DESKTOP_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_DESKTOP_PACKAGE_DEPENDS "fonts-dejavu-core")
set(CPACK_DEBIAN_DESKTOP_PACKAGE_RECOMMENDS "ponderscope, openssh-client")
# Letters of other scripts, in the text and in figures.
set(CPACK_DEBIAN_DESKTOP_PACKAGE_SUGGESTS "fonts-noto-core, fonts-noto-cjk")
set(CPACK_DEBIAN_ENGINE_PACKAGE_NAME ponderscope)
set(CPACK_COMPONENT_ENGINE_DESCRIPTION
    "The command line and the engine behind it, with sample models. LibTorch ${PONDERSCOPE_TORCH_VERSION} is looked for at run time: Torch_DIR, or where ./run of the sources put it.")
set(CPACK_DEBIAN_ENGINE_PACKAGE_RECOMMENDS "ponderscope-desktop")
# LibTorch is no package of the distribution: dependencies are those of the program that reads traces, and what the engine adds.
find_library(utf8proc_library utf8proc HINTS ${UTF8PROC_LIBRARY_DIRS} REQUIRED)
get_filename_component(utf8proc_library "${utf8proc_library}" REALPATH)
string(REGEX REPLACE ".*\\.so\\.([0-9]+).*" "libutf8proc\\1" utf8proc_package "${utf8proc_library}") # by its soname, as it is linked
set(CPACK_DEBIAN_ENGINE_PACKAGE_DEPENDS "libc6, libstdc++6, libsqlite3-0, zlib1g, libzstd1, libonig5, ${utf8proc_package}, libssl3 | libssl3t64")
set(CPACK_COMPONENTS_ALL "")
foreach(component engine desktop)
  string(TOUPPER ${component} name)
  if(PONDERSCOPE_${name})
    list(APPEND CPACK_COMPONENTS_ALL ${component})
  endif()
endforeach()
include(CPack)
