// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace ponderscope::remote {

/// Whether a name begins with ssh://, and so names something on another machine.
bool is_remote(const std::filesystem::path& path);

/// ssh://[USER@]HOST[:PORT]/PATH, taken apart. A path that begins with /~/ is below the home folder there.
struct Address {
    std::string host; ///< as ssh takes it, with the user; an IPv6 address without its brackets
    int port = 0;     ///< 0: as ssh's configuration says
    std::string path; ///< absolute

    [[nodiscard]] std::string machine() const; ///< ssh://HOST, what all paths there begin with
    [[nodiscard]] std::string url() const { return machine() + path; }
};

/// InputError: no host, or characters in it that ssh could take for something else (a first '-', blanks).
Address parse_address(const std::string& url);

/// Quotes any text as one word of a POSIX shell.
std::string shell_quoted(const std::string& word);

/// How the other machine is reached. Set before the first connection; the environment decides otherwise.
struct Settings {
    /// Called as ssh is: options, `--`, host, one command for the shell there. PONDERSCOPE_SSH, or "ssh".
    std::string ssh;
    /// ponderscope on the other machine, a name or a path: PONDERSCOPE_REMOTE, or "ponderscope".
    std::string program;
    /// Seconds for which a question waits for a connection that was cut; then it fails with a sentence.
    double patience = 30;
    /// Without a terminal ssh does not ask for a passphrase on it (but through SSH_ASKPASS, if that is
    /// set).
    bool terminal = true;
};
Settings& settings();

/// The command line, program first, that runs `ponderscope ARGUMENTS` at \p where through ssh.
std::vector<std::string> ssh_command(const Address& where, const std::vector<std::string>& arguments);

} // namespace ponderscope::remote
