// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/figure/command.h"

#include "core/base/error.h"
#include "core/base/files.h"
#include "core/base/utf8.h"
#include "views/figure/parts.h"
#include "views/figure/writer/backends.h"

#include <QGuiApplication>

#include <algorithm>
#include <clocale>
#include <cstdio>
#include <memory>
#include <string_view>

namespace ponderscope::figure {
namespace {

std::string format_of(const std::string& extension) {
    return QString::fromStdString(extension).toLower().remove(u'.').toStdString();
}

void check_ending(const std::filesystem::path& path) {
    const std::string format = format_of(path.extension().string());
    if (std::find(std::begin(formats), std::end(formats), format) == std::end(formats)) {
        throw InputError(ErrorId::usage_value, path, "a file that ends in .pdf, .svg, .png, .tex or .csv",
                         format.empty() ? "no ending" : "." + format, "choose a format by the ending");
    }
}

/// The LaTeX table of a figure; null: the figure is not a table.
const Table* latex_table(const Figure& figure) {
    const auto found = std::ranges::find_if(
        figure.tables, [](const Table& table) { return table.extension == "tex" && table.suffix.empty(); });
    return found == figure.tables.end() ? nullptr : &*found;
}

void make(const std::filesystem::path& spec_file, const std::filesystem::path& output) {
    check_ending(output);
    const FigureSpec spec = read_figure_spec(spec_file);
    const FigureData data = gather(spec);
    const Fonts fonts = Fonts::load(QString::fromStdString(spec.font));
    const Figure figure = compose(spec, data, fonts);
    const auto written = write_figure(figure, fonts, output, spec.dpi);
    for (const Notice& notice : figure.notices) {
        std::fprintf(stderr, "%s\n", visible(notice.text).c_str());
    }
    for (std::size_t i = 0; i < written.size(); ++i) {
        const bool drawn = i == 0 && format_of(written[i].extension().string()) != "csv";
        const std::string size = drawn ? " (" + number_text(figure.page.size().width() / points_per_mm) +
                                             " × " +
                                             number_text(figure.page.size().height() / points_per_mm) + " mm)"
                                       : "";
        std::printf("%s%s\n", written[i].string().c_str(), size.c_str());
    }
}

} // namespace

QByteArray encode(const Figure& figure, const Fonts& fonts, const std::string& extension, double dpi) {
    const std::string format = format_of(extension);
    if (format == "pdf") {
        return to_pdf(figure.page, fonts);
    }
    if (format == "svg") {
        return to_svg(figure.page, fonts);
    }
    if (format == "png") {
        return to_png(figure.page, fonts, dpi);
    }
    if (format == "tex") {
        if (const Table* table = latex_table(figure)) {
            return QByteArray::fromStdString(table->csv);
        }
        if (figure.pgfplots.empty()) {
            throw InputError(ErrorId::usage_unsuited,
                             "Only charts and tables can be written as LaTeX. Write this figure as .pdf, "
                             ".svg or .png, or write the charts of a page one by one.");
        }
        return QByteArray::fromStdString(figure.pgfplots);
    }
    throw InputError(ErrorId::usage_value,
                     "\"" + extension + "\" is not a format of figures; use pdf, svg, png, tex or csv.");
}

std::vector<std::filesystem::path> write_figure(const Figure& figure, const Fonts& fonts,
                                                const std::filesystem::path& path, double dpi) {
    check_ending(path);
    std::vector<std::filesystem::path> written;
    if (format_of(path.extension().string()) != "csv") {
        write_file_atomically(path, encode(figure, fonts, path.extension().string(), dpi).toStdString());
        written.push_back(path);
    }
    for (const Table& table : figure.tables) {
        std::filesystem::path beside = path;
        if (&table == latex_table(figure) && format_of(path.extension().string()) == "tex") {
            continue; // already written as the figure itself
        }
        const std::string suffix = table.extension != "csv" && table.suffix.empty() ? "table" : table.suffix;
        beside.replace_extension((suffix.empty() ? "." : "." + suffix + ".") + table.extension);
        write_file_atomically(beside, table.csv);
        written.push_back(beside);
    }
    return written;
}

bool asks_for_figure(int argc, char** argv) {
    return argc > 1 && std::string_view(argv[1]) == "--figure";
}

int run_figure_command(int argc, char** argv) {
    try {
        if (argc != 5 || !asks_for_figure(argc, argv) || std::string_view(argv[3]) != "-o") {
            throw InputError(ErrorId::usage_missing,
                             "expected --figure SPEC.json -o FILE.pdf|svg|png|tex|csv; see ponderscope "
                             "figure --help.");
        }
        std::unique_ptr<QGuiApplication> application;
        if (!QCoreApplication::instance()) {
            qputenv("QT_QPA_PLATFORM", "offscreen");
            // Drop Qt's warnings about a missing desktop.
            qInstallMessageHandler([](QtMsgType type, const QMessageLogContext&, const QString& text) {
                if (type == QtCriticalMsg || type == QtFatalMsg) {
                    std::fprintf(stderr, "%s\n", qUtf8Printable(text));
                }
            });
            application = std::make_unique<QGuiApplication>(argc, argv);
            std::setlocale(LC_NUMERIC, "C"); // as in the window
        }
        make(argv[2], argv[4]);
        return 0;
    } catch (const Error& error) {
        std::fprintf(stderr, "ponderscope: %s [%s]\n", visible(error.what()).c_str(), name_of(error.id()));
    } catch (const std::bad_alloc&) {
        std::fputs("ponderscope: There is not enough memory for this figure; choose fewer tokens.\n", stderr);
    } catch (const std::exception& error) {
        std::fprintf(stderr, "ponderscope: The figure could not be made: %s.\n", error.what());
    }
    return 2;
}

} // namespace ponderscope::figure
