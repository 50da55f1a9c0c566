// SPDX-License-Identifier: GPL-3.0-or-later
// A real text recorded with a checkpoint of every method and every depth mixing, and each run opened in the
// window: what the engine says must be something that the views show.
#include "app/desktop/record_command.h"
#include "core/trace/reader.h"
#include "tests/support/test_data.h"

#include <QtTest>
#include <QtWidgets>

#include <algorithm>
#include <filesystem>
#include <set>

using namespace Qt::StringLiterals;
using namespace ponderscope;

namespace {

struct MethodRecording {
    const char* run;
    const char* golden;
    const char* tab;                ///< the panel to be shown
    std::vector<std::string> holds; ///< signals with numbers in them
};

// Names of runs are those of methods, where no depth mixing is what they are here for.
const MethodRecording recordings[] = {
    {"vanilla", "vanilla_llama_gqa_untied_eps01_exit", "heatmap", {"nll", "candidate_ids"}},
    {"looped", "loop_llama_k3", "heatmap", {"nll", "kl_previous_current", "cosine"}},
    {"pause", "pause_llama_k2", "heatmap", {"nll", "latent_difference"}},
    {"ponderlm",
     "ponderlm_llama_s3_scaled_multiply_temp_untied_gqa",
     "heatmap",
     {"nll", "kl_previous_current"}},
    {"ponderlm_reset", "ponderlm_reset_llama_k3_scaled", "heatmap", {"nll", "margin"}},
    {"ponderlm_hidden", "ponderlm_hidden_neox_k2", "heatmap", {"nll", "cosine"}},
    {"ponderlm2", "ponderlm2_llama_k1_j3_scaled", "heatmap", {"nll", "jacobi_difference"}},
    {"adaponderlm", "adaponderlm_gpt_neox_tau_1e4", "halting", {"nll", "gate"}},
    {"ponderlm3",
     "ponderlm3_llama_tau_1e4",
     "halting",
     {"nll", "gate", "halting_mass", "router_probability"}},
    {"adaptive_latent_cot",
     "adaptive_latent_cot_llama_tau_1e4",
     "halting",
     {"nll", "gate", "halting_mass", "reach"}},
    {"ouro", "ouro_r4_mha_untied", "halting", {"nll", "gate"}},
    {"huginn", "huginn_2_4_2_r4_tied", "heatmap", {"nll", "state_norm"}},
    {"parcae", "parcae_2_2_2_r4_tied", "heatmap", {"nll", "latent_difference"}},
    {"tah", "tah_qwen3_2iter_tied", "halting", {"nll", "gate"}},
    {"depth attention", "da_llama_gqa_stride2_window2", "depth", {"nll", "depth_weights"}},
    {"looped depth attention", "nanbeige_loop2_da_default_stride", "depth", {"nll", "depth_weights"}},
    {"block attnres", "attnres_llama_block4", "heatmap", {"nll", "attnres_weights"}},
    {"mhc", "mhc_llama_4streams", "heatmap", {"nll", "mhc_read", "mhc_write"}},
    {"denseformer", "denseformer_llama", "heatmap", {"nll"}}};

/// Runs a program; its stderr when it fails, empty when it ends well.
QByteArray run(const QString& program, const QStringList& arguments) {
    QProcess process;
    process.start(program, arguments);
    if (!process.waitForFinished(300'000)) {
        return "took too long";
    }
    const QByteArray said = process.readAllStandardError();
    return process.exitCode() == 0 ? QByteArray()
                                   : said + " (code " + QByteArray::number(process.exitCode()) + ")";
}

} // namespace

class DesktopMethodsTest : public QObject {
    Q_OBJECT
private Q_SLOTS:
    void initTestCase() {
        if (testing::test_data().empty()) {
            QSKIP("reference data golden is absent; set PONDERSCOPE_TEST_DATA to run this test");
        }
        trace_ = folder_.filePath(u"methods.ponder"_s);
        QFile passage(
            QString::fromStdString((testing::source_tree() / "sample_models/texts/passage.txt").string()));
        QVERIFY(passage.open(QIODevice::ReadOnly));
        QFile text(folder_.filePath(u"text.txt"_s));
        QVERIFY(text.open(QIODevice::WriteOnly));
        text.write(passage.readAll().left(500));
        text.close();
        for (const MethodRecording& one : recordings) {
            record(one);
            if (QTest::currentTestFailed()) {
                return;
            }
        }
    }

    void everyMethodIsHere() {
        std::set<std::string> methods;
        for (const RunInfo& run : TraceReader::open(trace_.toStdString()).runs()) {
            methods.insert(run.method);
        }
        for (const QString& method : all_methods()) {
            if (method == u"dory" || method == u"hrm_text") {
                continue; // vocabularies of about a hundred tokens, which no tokenizer at hand fits
            }
            QVERIFY2(methods.contains(method.toStdString()), qPrintable(method));
        }
    }

    void everyRunIsShown_data() {
        QTest::addColumn<int>("number");
        for (int i = 0; i < static_cast<int>(std::size(recordings)); ++i) {
            QTest::newRow(recordings[i].run) << i;
        }
    }
    void everyRunIsShown() {
        QFETCH(int, number);
        const MethodRecording& one = recordings[number];
        const TraceReader reader = TraceReader::open(trace_.toStdString());
        const RunInfo info = find_run(reader, one.run);
        QVERIFY(info.complete && info.scored_tokens > 100);
        for (const std::string& name : one.holds) {
            const auto chunk = reader.signal(info.id, 0, name);
            QVERIFY2(chunk.has_value(), name.c_str());
            const std::vector<float> values = to_floats(*chunk);
            QVERIFY2(std::ranges::any_of(values, [](float value) { return value != 0; }), name.c_str());
        }
        const QString picture = folder_.filePath(u"window.png"_s);
        QFile::remove(picture);
        const QByteArray said =
            run(QStringLiteral(PONDERSCOPE_DESKTOP_PROGRAM),
                {u"--screenshot"_s, picture, u"--select-token"_s, u"60"_s, u"--tab"_s,
                 QString::fromLatin1(one.tab), trace_ + u'#' + QString::fromLatin1(one.run)});
        QVERIFY2(said.isEmpty(), said.constData());
        const QImage image(picture);
        QCOMPARE(image.size(), QSize(1440, 900));
        // Losses colour the words and steps a heatmap: an empty view has a handful of greys.
        QSet<QRgb> colours;
        for (int y = 0; y < image.height(); y += 3) {
            for (int x = 0; x < image.width(); x += 3) {
                colours.insert(image.pixel(x, y));
            }
        }
        QVERIFY2(colours.size() > 150, qPrintable(QString::number(colours.size())));
        if (const QString kept = qEnvironmentVariable("PONDERSCOPE_KEEP_PICTURES"); !kept.isEmpty()) {
            QFile::copy(picture, kept + u'/' + QString::fromLatin1(one.run) + u".png"_s);
        }
    }

private:
    /// The reference's weights with a tokenizer that fits them, over the text.
    void record(const MethodRecording& one) {
        const QDir golden(QString::fromStdString((testing::test_data() / "golden" / one.golden).string()));
        const QString tokenizer = QString::fromStdString(
            (testing::test_data() / "external/checkpoints/stories260K_hf/tokenizer.json").string());
        if (!golden.exists() || !QFile::exists(tokenizer)) {
            QSKIP("reference data golden or stories260K_hf is absent");
        }
        const QString folder = folder_.filePath(QString::fromLatin1(one.golden));
        std::filesystem::copy(golden.path().toStdString(), folder.toStdString(),
                              std::filesystem::copy_options::recursive);
        QVERIFY(QFile::copy(tokenizer, folder + u"/tokenizer.json"_s));
        QFile description(golden.filePath(u"case.json"_s));
        QVERIFY(description.open(QIODevice::ReadOnly));
        QStringList arguments{u"record"_s, folder, u"--text"_s, folder_.filePath(u"text.txt"_s),
                              u"-o"_s,     trace_, u"--name"_s, QString::fromLatin1(one.run)};
        for (const QJsonValue argument :
             QJsonDocument::fromJson(description.readAll()).object().value(u"arguments"_s).toArray()) {
            arguments << argument.toString();
        }
        // A start state of the reference is one of its ids; a text draws its own.
        if (const qsizetype state = arguments.indexOf(u"--initial-state"_s); state >= 0) {
            arguments.remove(state, 2);
        }
        const QByteArray said = run(QStringLiteral(PONDERSCOPE_PROGRAM), arguments);
        QVERIFY2(said.isEmpty(), (QByteArray(one.run) + ": " + said).constData());
    }

    QTemporaryDir folder_;
    QString trace_;
};

QTEST_GUILESS_MAIN(DesktopMethodsTest)
#include "desktop_methods_test.moc"
