// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/base/files.h"

#include "core/base/error.h"
#include "tests/support/errors.h"
#include "tests/support/test_data.h"

#include <gtest/gtest.h>

#include <atomic>
#include <csignal>
#include <thread>

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

namespace ponderscope {
namespace {

namespace fs = std::filesystem;
using testing::error_of;
using testing::TemporaryFolder;

/// The error begins with the path and has that id.
void expect_error(const std::string& error, const fs::path& path, const std::string& id) {
    EXPECT_TRUE(error.starts_with(path.string() + ": ")) << error;
    EXPECT_TRUE(error.ends_with(" [" + id + "]")) << error;
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
    EXPECT_EQ(testing::names_in(folder.path()).size(), 1U) << "nothing is left beside it";
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
    EXPECT_EQ(testing::names_in(folder.path()).size(), 1U);
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

TEST(Files, WrongPlacesAreNamed) {
    TemporaryFolder folder;
    fs::create_directory(folder / "sub");
    fs::create_symlink("loop", folder / "loop");
    fs::create_symlink("gone", folder / "dangling");
    ASSERT_EQ(::mkfifo((folder / "pipe").c_str(), 0600), 0);
    const auto mapping = [](const fs::path& path) { return error_of([&] { MappedFile::open(path); }); };
    const auto reading = [](const fs::path& path) { return error_of([&] { read_file(path); }); };
    const auto writing = [](const fs::path& path) {
        return error_of<Error>([&] { write_file_atomically(path, std::string_view("x")); });
    };
    for (const char* const missing : {"none", "dangling"}) {
        expect_error(mapping(folder / missing), folder / missing, "file.missing");
    }
    for (const fs::path& wrong : {folder / "sub", folder / "pipe", folder / "loop", fs::path("/dev/zero")}) {
        expect_error(reading(wrong), wrong, "file.kind");
    }
    for (const fs::path& wrong : {folder / "sub", fs::path("/dev/null")}) {
        expect_error(writing(wrong), wrong, "file.kind");
    }
    expect_error(writing(folder / "no/x"), folder / "no", "file.missing");
    EXPECT_NE(writing(folder / "loop"), "");
}

TEST(Files, NoPermission) {
    if (::geteuid() == 0) {
        GTEST_SKIP() << "root may write everywhere";
    }
    TemporaryFolder folder;
    fs::create_directory(folder / "closed");
    fs::permissions(folder / "closed", fs::perms::owner_read | fs::perms::owner_exec);
    expect_error(error_of<EnvironmentError>(
                     [&] { write_file_atomically(folder / "closed/x", std::string_view("x")); }),
                 folder / "closed", "file.permission");
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
        error_of<Error>([&] { write_file_atomically(folder / "a", std::string(4'000'000, 'x')); });
    ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &before), 0);
    std::signal(SIGXFSZ, handler);
    EXPECT_TRUE(said.starts_with((folder / "a").string() + ": ")) << said;
    EXPECT_EQ(read_file(folder / "a"), "old");
    EXPECT_EQ(testing::names_in(folder.path()).size(), 1U);
}

TEST(Files, CausesBecomeErrors) {
    expect_error(error_of<EnvironmentError>([] { throw_file_error("/d/f", ENOSPC, "written"); }), "/d/f",
                 "file.space");
    EXPECT_THROW(throw_file_error("/d/f", EROFS, "written"), EnvironmentError);
    EXPECT_THROW(throw_file_error("/d/f", ENOENT, "read"), InputError);
}

TEST(Files, SizesAreLimited) {
    TemporaryFolder folder;
    write_file_atomically(folder / "a", std::string_view("12345"));
    EXPECT_EQ(read_file(folder / "a", 5), "12345");
    expect_error(error_of([&] { read_file(folder / "a", 4); }), folder / "a", "file.size");
    EXPECT_FALSE(read_file("/proc/self/status").empty()) << "a file whose size says 0";
}

TEST(TextFiles, FaultsAreNamedWithTheirPlace) {
    TemporaryFolder folder;
    const fs::path path = folder / "t.txt";
    const auto reading = [&](std::string_view content) {
        write_file_atomically(path, content);
        return error_of([&] { read_text_file(path); });
    };
    EXPECT_EQ(reading("A text.\r\n"), "");
    EXPECT_EQ(read_text_file(path), "A text.\r\n");
    EXPECT_EQ(reading("\xEF\xBB\xBF"
                      "BOM"),
              "");
    EXPECT_EQ(read_text_file(path).size(), 6U) << "a byte order mark stays";
    expect_error(reading(""), path, "text.empty");
    for (const auto& [content, place] : {std::pair{std::string_view("abc\xFF"), "byte 3"},
                                         {std::string_view("ab\0c", 4), "byte 2"},
                                         {std::string_view("\xFF\xFEh\0i\0", 6), "iconv -f UTF-16"}}) {
        const std::string error = reading(content);
        expect_error(error, path, "text.bytes");
        EXPECT_NE(error.find(place), std::string::npos) << error;
    }
    expect_error(error_of([] { check_text("", "the prompt"); }), "the prompt", "text.empty");
}

TEST(TextFiles, TheEdgeTextsOfOthers) {
    PONDERSCOPE_REQUIRE_TEST_DATA("external/text/edge");
    for (const auto& entry : fs::directory_iterator(testing::test_data() / "external" / "text" / "edge")) {
        if (!entry.is_regular_file()) {
            continue;
        }
        const std::string raw = read_file(entry.path());
        const bool fine = !raw.empty() && raw.find('\0') == std::string::npos &&
                          error_of<Error>([&] { check_text(raw, "x"); }).empty();
        EXPECT_EQ(error_of<Error>([&] { read_text_file(entry.path()); }).empty(), fine) << entry.path();
    }
}

} // namespace
} // namespace ponderscope
