# SPDX-License-Identifier: GPL-3.0-or-later
"""resources/build/file_local_names.py: this tree has no clash, and each kind of clash is found.

    file_local_names_test.py TREE
"""

import subprocess
import sys
import tempfile
from pathlib import Path

SOURCES = {
    "core/a/CMakeLists.txt": "",
    "core/a/one.cpp": """
        namespace app { namespace {
        const char* const word = "{";  // a brace in a string, and a } in a comment
        constexpr int numbers[] = {1, 2};
        struct Place { int word; void look() { int inside = 0; } };
        using Path = std::filesystem::path;
        bool tiled(int type) { return type > 0; }
        void overload(int) {}
        } // namespace
        static int counted(const std::vector<int>& all, int from = 0) { static int calls = 0; return ++calls; }
        } // namespace app
        """,
    "core/a/two.cpp": """
        namespace app { namespace {
        class Place final : public Base { int numbers; };
        enum class Other { word };
        using Path = std::filesystem::path;
        bool tiled(int kind) { return kind == 1; }
        void overload(double) {}
        int counted(const std::vector<int>& some, int at) { return at; }
        } // namespace
        int exported() { return 0; }
        } // namespace app
        """,
    "core/a/three.h": "namespace app { inline constexpr const char* word = nullptr; int exported(); }",
    "core/b/CMakeLists.txt": "",
    "core/b/four.cpp": "namespace app { namespace { bool tiled(int) { return true; } } }",
    "views/c/CMakeLists.txt": "",
    "views/c/five.cpp": "namespace app::views { namespace { int numbers = 1; } }",
    "views/c/six.cpp": "namespace app { namespace { int numbers = 1; } }",
}
CLASHES = {
    "app::word: core/a/one.cpp, core/a/three.h",
    "app::Place: core/a/one.cpp, core/a/two.cpp",
    "app::tiled(int): core/a/one.cpp, core/a/two.cpp",
    "app::counted(conststd::vector<int>&,int): core/a/one.cpp, core/a/two.cpp",
}


def run(tree: Path) -> tuple[int, set[str]]:
    script = Path(sys.argv[1]) / "resources/build/file_local_names.py"
    done = subprocess.run([sys.executable, script, tree], capture_output=True, text=True, check=False)
    assert not done.stderr, done.stderr
    return done.returncode, set(done.stdout.splitlines())


assert run(Path(sys.argv[1])) == (0, set()), run(Path(sys.argv[1]))[1]
with tempfile.TemporaryDirectory() as folder:
    for name, text in SOURCES.items():
        path = Path(folder, name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    code, lines = run(Path(folder))
    assert code == 1 and lines == CLASHES, lines
