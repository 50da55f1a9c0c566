// SPDX-License-Identifier: GPL-3.0-or-later
// ponderscope: the command line. No Qt: a GPU server builds this alone.
#include "app/cli/console.h"
#include "app/cli/verbs.h"
#include "core/base/error.h"
#include "core/base/utf8.h"

#include <cstdio>
#include <exception>
#include <new>

namespace {

int fail(int code, const std::string& sentence) {
    // It may name what a stranger's file says.
    std::fprintf(stderr, "ponderscope: %s\n", ponderscope::visible(sentence).c_str());
    return code;
}

} // namespace

int main(int argc, char** argv) {
    using namespace ponderscope;
    // Before any library starts a thread, so that all of them inherit the blocked signals.
    cli::stop_on_interrupt();

    CLI::App program{
        "Looks inside language models that decide how long to think about each token.\n"
        "Every verb has --help with an example. A run inside a trace is named TRACE.ponder#RUN."};
    program.set_version_flag("--version", PONDERSCOPE_VERSION);
    program.require_subcommand(1);
    program.set_help_all_flag("--help-all", "Print the help of every verb and exit");
    cli::add_record(program);
    cli::add_generate(program);
    cli::add_logits(program);
    cli::add_verify(program);
    cli::add_inspect(program);
    cli::add_tokenize(program);
    cli::add_compare(program);
    cli::add_policy(program);
    cli::add_referee(program);
    cli::add_stats(program);
    cli::add_lineage(program);
    cli::add_annotate(program);
    cli::add_check(program);
    cli::add_train(program);
    cli::add_curves(program);
    cli::add_merge(program);
    cli::add_export(program);
    cli::add_figure(program);
    cli::add_page(program);
    cli::add_open(program);

    try {
        program.parse(argc, argv);
    } catch (const CLI::ParseError& error) {
        // Help and version are "errors" of code 0 and print to stdout; the rest is wrong use.
        if (error.get_exit_code() == 0) {
            return program.exit(error);
        }
        return fail(cli::wrong_input, std::string(error.what()) +
                                          (std::string(error.what()).ends_with('.') ? "" : ".") +
                                          " Run with --help for the usage.");
    } catch (const Cancelled&) {
        return cli::cancelled;
    } catch (const CheckFailed& error) {
        return fail(cli::check_failed, error.what());
    } catch (const Error& error) {
        return fail(cli::wrong_input, error.what());
    } catch (const std::bad_alloc&) {
        return fail(cli::wrong_input, "Out of memory; a smaller --batch or --context needs less.");
    } catch (const std::exception& error) {
        return fail(cli::wrong_input, std::string("Unexpected: ") + error.what());
    }
    return cli::done;
}
