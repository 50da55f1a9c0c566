// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/base/files.h"

#include "core/base/error.h"
#include "tests/support/test_data.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <fstream>
#include <thread>

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

namespace ponderscope {
namespace {

namespace fs = std::filesystem;
using testing::TemporaryFolder;

template <typename Call>
std::string sentence(Call&& call) {
    try {
        call();
    } catch (const Error& error) {
        return error.what();
    }
    return "(no error)";
}

std::size_t entries(const fs::path& folder) {
    return static_cast<std::size_t>(std::distance(fs::directory_iterator(folder), fs::directory_iterator()));
}

TEST(Files, WritesAndReadsBack) {
    TemporaryFolder folder;
    std::string content(3'000'000, '\0');
    for (std::size_t i = 0; i < content.size(); ++i) {
        content[i] = static_cast<char>(i * 31);
    }
    write_file_atomically(folder / "a", content);
    EXPECT_EQ(read_file(folder / "a"), content);
    const MappedFile mapped = MappedFile::open(folder / "a");
    EXPECT_EQ(mapped.text(), content);
    mapped.expect_sequential_reads();
    mapped.will_need(mapped.bytes().subspan(5, 10'000));
    mapped.done_with(mapped.bytes().subspan(5, 10'000));
    EXPECT_EQ(mapped.text(), content);
    EXPECT_EQ(entries(folder.path()), 1U) << "nothing is left beside it";
    write_file_atomically(folder / "a", std::string_view());
    EXPECT_EQ(read_file(folder / "a"), "");
    EXPECT_EQ(MappedFile::open(folder / "a").bytes().size(), 0U);
    EXPECT_EQ(mapped.text(), content) << "a reader keeps the file it opened";
}

TEST(Files, AnUncommittedFileLeavesTheOldOneAlone) {
    TemporaryFolder folder;
    write_file_atomically(folder / "a", std::string_view("old"));
    {
        AtomicFile file(folder / "a");
        file.write(std::string_view("half"));
        EXPECT_TRUE(fs::exists(file.temporary_path()));
    }
    EXPECT_EQ(read_file(folder / "a"), "old");
    EXPECT_EQ(entries(folder.path()), 1U);
}

TEST(Files, NewFilesHaveTheOrdinaryModeAndOldOnesKeepTheirs) {
    TemporaryFolder folder;
    const mode_t mask = ::umask(022);
    write_file_atomically(folder / "new", std::string_view("x"));
    ::chmod((folder / "new").c_str(), 0640);
    struct stat status {};
    write_file_atomically(folder / "new", std::string_view("y"));
    ASSERT_EQ(::stat((folder / "new").c_str(), &status), 0);
    EXPECT_EQ(status.st_mode & 07777U, 0640U);
    write_file_atomically(folder / "newer", std::string_view("y"));
    ASSERT_EQ(::stat((folder / "newer").c_str(), &status), 0);
    EXPECT_EQ(status.st_mode & 07777U, 0644U);
    ::umask(mask);
}

TEST(Files, OtherThreadsKeepTheirUmaskMeanwhile) {
    TemporaryFolder folder;
    const mode_t mask = ::umask(077);
    std::atomic<bool> done = false;
    std::jthread writer([&] {
        while (!done) {
            write_file_atomically(folder / "a", std::string_view("new"));
            fs::remove(folder / "a");
        }
    });
    mode_t seen = 0;
    for (int i = 0; i < 5000; ++i) {
        const fs::path mine = folder / "b";
        const int descriptor = ::open(mine.c_str(), O_WRONLY | O_CREAT | O_EXCL, 0666);
        struct stat status {};
        ::fstat(descriptor, &status);
        seen |= status.st_mode & 0777U;
        ::close(descriptor);
        ::unlink(mine.c_str());
    }
    done = true;
    writer.join();
    ::umask(mask);
    EXPECT_EQ(seen, 0600U) << "a file was made while the umask was another";
}

TEST(Files, LinksAreWrittenThrough) {
    TemporaryFolder folder;
    fs::create_directory(folder / "elsewhere");
    fs::create_symlink("elsewhere/target", folder / "link");
    write_file_atomically(folder / "link", std::string_view("one"));
    EXPECT_TRUE(fs::is_symlink(folder / "link"));
    EXPECT_EQ(read_file(folder.path() / "elsewhere" / "target"), "one");
}

TEST(Files, WrongPlacesEachHaveTheirSentence) {
    TemporaryFolder folder;
    fs::create_directory(folder / "sub");
    fs::create_symlink("loop", folder / "loop");
    fs::create_symlink("gone", folder / "dangling");
    EXPECT_EQ(sentence([&] { MappedFile::open(folder / "dangling"); }),
              (folder / "dangling").string() + ": expected a file, found a link to a missing file; "
                                               "restore the file that the link points to.");
    ASSERT_EQ(::mkfifo((folder / "pipe").c_str(), 0600), 0);
    const auto at = [&](const std::string& name) { return (folder / name).string(); };
    EXPECT_EQ(sentence([&] { MappedFile::open(folder / "none"); }),
              at("none") + ": expected a file, found nothing there; check the path.");
    EXPECT_EQ(sentence([&] { read_file(folder / "sub"); }),
              at("sub") + ": expected a file, found a folder; give the path of a file.");
    EXPECT_EQ(sentence([&] { read_file(folder / "pipe"); }),
              at("pipe") + ": expected a file, found a pipe; give the path of a file.");
    EXPECT_EQ(sentence([&] { read_file(folder / "loop"); }),
              at("loop") + ": expected a file, found a loop of links; repair the links.");
    EXPECT_EQ(sentence([&] { write_file_atomically(folder / "sub", std::string_view("x")); }),
              at("sub") + ": expected a file to write, found a folder; choose another name.");
    EXPECT_EQ(sentence([&] { write_file_atomically("/dev/null", std::string_view("x")); }),
              "/dev/null: expected a file to write, found a device; choose another name.");
    EXPECT_EQ(sentence([&] { write_file_atomically(folder.path() / "no" / "x", std::string_view("x")); }),
              at("no") + ": expected a folder to write into, found no such folder; create it or give "
                         "another path.");
    EXPECT_EQ(
        sentence([&] { write_file_atomically(folder / "loop", std::string_view("x")); }).find("(no error)"),
        std::string::npos);
    EXPECT_EQ(sentence([&] { read_file("/dev/zero"); }),
              "/dev/zero: expected a file, found a device; give the path of a file.");
}

TEST(Files, NoPermission) {
    if (::geteuid() == 0) {
        GTEST_SKIP() << "root may write everywhere";
    }
    TemporaryFolder folder;
    fs::create_directory(folder / "closed");
    fs::permissions(folder / "closed", fs::perms::owner_read | fs::perms::owner_exec);
    EXPECT_EQ(sentence([&] { write_file_atomically(folder.path() / "closed" / "x", std::string_view("x")); }),
              (folder / "closed").string() +
                  ": cannot be written: no permission; change the permissions or choose another place.");
    fs::permissions(folder / "closed", fs::perms::owner_all);
}

TEST(Files, AFullDiskLeavesNothingHalfWritten) {
    // A limit on the size of files fails a write in the middle just as a full disk does, without needing to
    // be root.
    TemporaryFolder folder;
    write_file_atomically(folder / "a", std::string_view("old"));
    struct rlimit before {};
    ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
    auto* const handler = std::signal(SIGXFSZ, SIG_IGN);
    struct rlimit small = before;
    small.rlim_cur = 1'500'000;
    ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
    const std::string said =
        sentence([&] { write_file_atomically(folder / "a", std::string(4'000'000, 'x')); });
    ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &before), 0);
    std::signal(SIGXFSZ, handler);
    EXPECT_EQ(said.rfind((folder / "a").string() + ": cannot be written: ", 0), 0U) << said;
    EXPECT_EQ(read_file(folder / "a"), "old");
    EXPECT_EQ(entries(folder.path()), 1U);
}

TEST(Files, DiskFullIsSaidInWords) {
    EXPECT_EQ(sentence([] { throw_file_error("/d/f", ENOSPC, "written"); }),
              "/d/f: cannot be written: the disk is full; free some space or choose another place.");
    EXPECT_THROW(throw_file_error("/d/f", ENOSPC, "written"), EnvironmentError);
    EXPECT_THROW(throw_file_error("/d/f", EROFS, "written"), EnvironmentError);
    EXPECT_THROW(throw_file_error("/d/f", ENOENT, "read"), InputError);
}

TEST(Files, SizesAreLimited) {
    TemporaryFolder folder;
    write_file_atomically(folder / "a", std::string_view("12345"));
    EXPECT_EQ(read_file(folder / "a", 5), "12345");
    EXPECT_EQ(sentence([&] { read_file(folder / "a", 4); }),
              (folder / "a").string() +
                  ": expected at most 4 bytes, found 5 bytes; check that it is the right file.");
    EXPECT_FALSE(read_file("/proc/self/status").empty()) << "a file whose size says 0";
}

TEST(TextFiles, EveryFaultHasItsSentence) {
    TemporaryFolder folder;
    const std::string path = (folder / "t.txt").string();
    const auto said = [&](std::string_view content) {
        write_file_atomically(path, content);
        return sentence([&] { read_text_file(path); });
    };
    EXPECT_EQ(said("A text.\r\n"), "(no error)");
    EXPECT_EQ(read_text_file(path), "A text.\r\n");
    EXPECT_EQ(said("\xEF\xBB\xBF"
                   "BOM"),
              "(no error)");
    EXPECT_EQ(read_text_file(path).size(), 6U) << "a byte order mark stays";
    EXPECT_EQ(said(""), path + ": expected a text, found an empty one; give a text of at least two tokens.");
    EXPECT_EQ(
        said("abc\xFF"),
        path + ": expected UTF-8 text, found an invalid byte sequence at byte 3; convert it to UTF-8 (iconv) "
               "or check that it is a text file.");
    EXPECT_EQ(said(std::string_view("ab\0c", 4)),
              path + ": expected text without NUL bytes, found one at byte 2; convert it to UTF-8 "
                     "(iconv) or check that it is a text file.");
    EXPECT_EQ(said(std::string_view("\xFF\xFEh\0i\0", 6)),
              path + ": expected UTF-8 text, found an invalid byte sequence at byte 0; it looks like UTF-16: "
                     "convert it to UTF-8 "
                     "(iconv -f UTF-16 -t UTF-8).");
    EXPECT_EQ(sentence([] { check_text("", "the prompt"); }),
              "the prompt: expected a text, found an empty one; give a text of at least two tokens.");
}

TEST(TextFiles, TheEdgeTextsOfOthers) {
    PONDERSCOPE_REQUIRE_TEST_DATA("external/text/edge");
    for (const auto& entry : fs::directory_iterator(testing::test_data() / "external" / "text" / "edge")) {
        if (!entry.is_regular_file()) {
            continue;
        }
        const std::string raw = read_file(entry.path());
        const bool fine = !raw.empty() && raw.find('\0') == std::string::npos &&
                          sentence([&] { check_text(raw, "x"); }) == "(no error)";
        EXPECT_EQ(sentence([&] { read_text_file(entry.path()); }) == "(no error)", fine) << entry.path();
    }
}

} // namespace
} // namespace ponderscope
