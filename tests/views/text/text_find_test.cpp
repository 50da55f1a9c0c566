// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/trace/reader.h"
#include "tests/views/text/made_up_text.h"
#include "tests/views/text/text_stage.h"
#include "views/common/format.h"
#include "views/text/find.h"
#include "views/text/find_bar.h"
#include "views/text/find_query.h"

#include <QLineEdit>
#include <QLocale>

#include <algorithm>
#include <limits>

using namespace Qt::StringLiterals;
using namespace ponderscope;
using testing::sequence_of;
using testing::Stage;

class TextFindTest : public QObject {
    Q_OBJECT
private Q_SLOTS:
    void findsTextAcrossTokens() {
        const auto data = sequence_of({"The", " light", "house", " LIGHT", "s", ".", " light"});
        QCOMPARE(find_tokens(*data, u"light"_s), (std::vector<qint64>{1, 3, 6}));
        QCOMPARE(find_tokens(*data, u"LIGHT"_s), (std::vector<qint64>{3}));
        QCOMPARE(find_tokens(*data, u"lighthouse"_s), (std::vector<qint64>{1}));
        QCOMPARE(find_tokens(*data, u"house l"_s), (std::vector<qint64>{2}));
        // Case beyond ASCII, also where upper and lower case differ in bytes; bytes that are no UTF-8.
        const auto wide =
            sequence_of({"Über", " ÜBER", "\xff\xfe", " ПЕРЕД", " \u212aelvin", " stra\u1e9ee"});
        QCOMPARE(find_tokens(*wide, u"über"_s), (std::vector<qint64>{0, 1}));
        QCOMPARE(find_tokens(*wide, u"Über"_s), (std::vector<qint64>{0}));
        QCOMPARE(find_tokens(*wide, u"перед"_s), (std::vector<qint64>{3}));
        QCOMPARE(find_tokens(*wide, u"kelvin"_s), (std::vector<qint64>{4}));
        QCOMPARE(find_tokens(*wide, u"elvin stra"_s), (std::vector<qint64>{4}));
        QCOMPARE(find_tokens(*wide, u"stra"_s), (std::vector<qint64>{5}));
        QVERIFY(find_tokens(*data, QString()).empty());
        QVERIFY(find_tokens(*data, u"absent"_s).empty());
        QCOMPARE(find_tokens(*sequence_of({"aa", "aa", "aa"}), u"a"_s, 2).size(), 2u);
    }

    void aLongTextIsSearchedBesideTheWindow() {
        Stage stage({.sequences = 1, .tokens = 80'000, .secondRun = false, .withSignals = false});
        QVERIFY(stage.view().sequence()->text.size() > (1 << 18));
        FindBar& bar = stage.panel.findBar();
        stage.panel.findText(u"nowhere at all"_s);
        bar.setQuery(u"the"_s); // what was typed last counts
        QVERIFY(bar.isBusy());
        QTRY_COMPARE(bar.hits(), find_tokens(*stage.view().sequence(), u"the"_s));
        QVERIFY(!bar.hits().empty());
        bar.setQuery(u"nowhere at all"_s);
        bar.close(); // while it is searched
        QTest::qWait(50);
        QVERIFY(bar.hits().empty());
    }

    void theFieldKeepsItsWidth() {
        Stage stage({.sequences = 1, .tokens = 100});
        stage.panel.findText(u"steps = 3 and foo > 4"_s);
        const auto* field = stage.panel.findBar().findChild<QLineEdit*>();
        QCoreApplication::processEvents();
        QVERIFY2(field->width() >= 200, qPrintable(QString::number(field->width())));
    }

    void aPatternThatIsGivenUpSaysSo() {
        const auto data = sequence_of({std::string(60, 'x'), " end"});
        QString problem;
        QVERIFY(find_pattern(*data, u"(x+x+)+y|end"_s, problem).empty());
        QVERIFY(!problem.isEmpty());
        QCOMPARE(find_pattern(*data, u"end"_s, problem), (std::vector<qint64>{1}));
        QVERIFY(problem.isEmpty());
    }

    void aConditionThatIsNoneSaysWhatIsWrong() {
        std::vector<TokenAnnotation> annotations(1);
        annotations[0].name = u"pos"_s;
        annotations[0].category = true;
        annotations[0].classes = {u"NOUN"_s};
        const auto said = [&](const char* text, bool isCondition = false) {
            QString problem;
            (void)Condition::parse(QString::fromUtf8(text), annotations, &problem, isCondition);
            return problem;
        };
        QVERIFY(said("nll >").contains(u"nll >"_s));
        QVERIFY(said("nll > and steps = 2").contains(u"nll >"_s));
        QVERIFY(said("nll > high").contains(u"high"_s));
        QVERIFY(!said("steps = 2 and").isEmpty());
        QVERIFY(said("steps = 2 and nlll > 3").contains(u"nlll"_s));
        QVERIFY(said("pos < NOUN").contains(u"pos"_s));
        QVERIFY(said("steps = 2 nll > 3").contains(u"2 nll > 3"_s));
        // A name that nothing has is a problem where the text was not found either.
        QVERIFY(said("gain > 1").isEmpty());
        QVERIFY(said("gain > 1", true).contains(u"“gain”"_s));
        QVERIFY(!find_in(*sequence_of({"a"}), u"gain > 1"_s, Attribution::predicted).hint.isEmpty());
        QVERIFY(find_in(*sequence_of({"gain > 1"}), u"gain > 1"_s, Attribution::predicted).hint.isEmpty());
        // A comma is a decimal sign, where it cannot part thousands.
        QVERIFY(said("nll > 4,5").isEmpty() && said("nll > ,5").isEmpty());
        const QLocale users;
        QLocale::setDefault(QLocale::c());
        QVERIFY(!said("nll > 4,500").isEmpty());
        QLocale::setDefault(QLocale(QLocale::German, QLocale::Germany)); // where it cannot
        QVERIFY(said("nll > 4,500").isEmpty());
        QLocale::setDefault(users);
        for (const char* text : {"nll > 3", "pos = NOUN and steps = 2", "ferry", "x = 3", "", "and", "nll"}) {
            QVERIFY2(said(text).isEmpty(), text);
        }
    }

    void conditionsFindTokens() {
        // nll of row t is t: token t shows row t - 1 when values stand at what was predicted.
        const auto data = sequence_of({"a", " b", " c", " d", " e"});
        data->tokens.steps = {0, 1, 2, 3, 1};
        data->tokens.nll[3] = std::numeric_limits<float>::quiet_NaN();
        const auto where = [&](const char* text, Attribution way = Attribution::predicting) {
            const auto condition = Condition::parse(QString::fromLatin1(text));
            return condition ? find_where(*data, *condition, way) : std::vector<qint64>{-1};
        };
        QCOMPARE(where("steps = 1"), (std::vector<qint64>{1, 4}));
        QCOMPARE(where("steps = 1", Attribution::predicted), (std::vector<qint64>{2}));
        QCOMPARE(where("Steps >= 1 and nll < 3"), (std::vector<qint64>{1, 2}));
        QCOMPARE(where("nll<=0 or steps>2"), (std::vector<qint64>{0, 3}));
        QCOMPARE(where("steps=0 or steps=1 and nll>3.5"), (std::vector<qint64>{0, 4})); // and binds tighter
        QCOMPARE(where("nll != 1"), (std::vector<qint64>{0, 2, 4})); // what has no value meets nothing
        QCOMPARE(where("id = 102 or position = 4"), (std::vector<qint64>{2, 4}));
        QCOMPARE(where("rank > -1e3"), (std::vector<qint64>{0, 1, 2, 3, 4}));
        // 0.1 in 32 bits is not 0.1 in 64: what is recorded so is found all the same.
        data->tokens.nll[2] = 0.1F;
        QCOMPARE(where("nll = 0.1"), (std::vector<qint64>{2}));
        QCOMPARE(where("nll <= 0.1"), (std::vector<qint64>{0, 2}));
        QCOMPARE(where("nll < 1e300"), (std::vector<qint64>{0, 1, 2, 4}));
        for (const char* text : {"", "steps", "steps =", "steps = x", "steps = 1 and", "steps = 1 nll < 2",
                                 "and steps = 1", "colour = 3", "the sum = 3", "steps = 1 xor nll = 2"}) {
            QVERIFY2(!Condition::parse(QString::fromLatin1(text)), text);
        }
        const auto one = Condition::parse(u"steps >= 0"_s);
        QCOMPARE(find_where(*data, *one, Attribution::predicting, 2).size(), 2U);
    }

    void conditionsKnowAnnotations() {
        constexpr double none = std::numeric_limits<double>::quiet_NaN();
        const auto data = sequence_of({"a", " b", " c", " d", " e"});
        data->annotations = {{u"part_of_speech"_s,
                              true,
                              {u"VERB"_s, u"proper \"noun\""_s, u"7"_s, u"Überschrift"_s},
                              {0, 1, none, 2, 3}},
                             {u"Score2"_s, false, {}, {none, -1, 2.5, 3, 4}},
                             {u"exact"_s, false, {}, {0.1, 16777216, 16777217, -1e300, none}}};
        const auto where = [&](const char* text, Attribution way = Attribution::predicting) {
            const auto condition = Condition::parse(QString::fromUtf8(text), data->annotations);
            return condition ? find_where(*data, *condition, way) : std::vector<qint64>{-1};
        };
        using Hits = std::vector<qint64>;
        QCOMPARE(where("part_of_speech = \"VERB\""), (Hits{0}));
        QCOMPARE(where("part_of_speech = VERB"), (Hits{0}));
        QCOMPARE(where("Part_Of_Speech == \"proper \"\"noun\"\"\""), (Hits{1}));
        QCOMPARE(where("part_of_speech = 7"), (Hits{3})); // a class by that name, not a number
        QCOMPARE(where("part_of_speech = Überschrift"), (Hits{4}));
        QCOMPARE(where("part_of_speech != VERB"), (Hits{1, 3, 4})); // what has no value meets nothing
        QCOMPARE(where("part_of_speech = verb"), (Hits{}));
        QCOMPARE(where("part_of_speech != NOUN"), (Hits{0, 1, 3, 4}));
        QCOMPARE(where("score2 > 2"), (Hits{2, 3, 4}));
        QCOMPARE(where("score2 > 2 and nll < 4"), (Hits{2, 3}));
        // As exact as they were given.
        QCOMPARE(where("exact = 0.1"), (Hits{0}));
        QCOMPARE(where("exact <= 0.1"), (Hits{0, 3}));
        QCOMPARE(where("exact = 16777217"), (Hits{2}));
        for (std::size_t t = 0; t < 4; ++t) { // and as they are shown
            const QString typed = u"exact = "_s + format_annotation(data->annotations[2], t);
            QCOMPARE(where(typed.toUtf8().constData()), (Hits{static_cast<qint64>(t)}));
        }
        // They are the token's own, whichever row it shows.
        QCOMPARE(where("score2 > 2", Attribution::predicted), (Hits{2, 3, 4}));
        QCOMPARE(where("part_of_speech = VERB or score2 = -1", Attribution::predicted), (Hits{0, 1}));
        for (const char* text : {"part_of_speech > VERB", "score2 = VERB", "score2 = \"3\"", "other = 3",
                                 "part_of_speech = two words", "part_of_speech = \"open", "score2 = nan"}) {
            QVERIFY2(!Condition::parse(QString::fromLatin1(text), data->annotations), text);
        }
        // Without them it is text to be found.
        QVERIFY(!Condition::parse(u"score2 > 2"_s));
    }

    void patternsFindTokens() {
        const auto data = sequence_of({"na\xc3\xafve", " ten", " times", " 1", "2", "3"});
        QString problem;
        QCOMPARE(find_pattern(*data, u"\\bt\\w+"_s, problem), (std::vector<qint64>{1, 2}));
        QCOMPARE(find_pattern(*data, u"\\d+"_s, problem), (std::vector<qint64>{3}));
        QCOMPARE(find_pattern(*data, u"(?i)VE ten"_s, problem), (std::vector<qint64>{0}));
        QVERIFY(find_pattern(*data, u"q*"_s, problem).empty());
        QVERIFY(problem.isEmpty());
        QVERIFY(find_pattern(*data, u"(open"_s, problem).empty());
        QVERIFY(!problem.isEmpty());
        const auto broken = sequence_of({"a\xff", "b"});
        QVERIFY(find_pattern(*broken, u"b"_s, problem).empty());
        QVERIFY(problem.contains(u"UTF-8"_s));
    }

    void findGoesRoundAndRound() {
        Stage stage({.sequences = 1, .tokens = 900});
        stage.panel.find();
        FindBar& bar = stage.panel.findBar();
        QVERIFY(bar.isVisible());
        bar.setQuery(u"the"_s);
        QVERIFY(bar.hits().size() > 3);
        QCOMPARE(stage.selection.token(), bar.hits().front());
        bar.next();
        QCOMPARE(stage.selection.token(), bar.hits()[1]);
        bar.previous();
        bar.previous();
        QCOMPARE(stage.selection.token(), bar.hits().back());
        QVERIFY(bar.status().contains(QString::number(bar.hits().size())));
        bar.setQuery(u"zyzzyva"_s);
        QVERIFY(!bar.status().isEmpty());
        bar.setQuery(u"nll >"_s);
        QVERIFY2(bar.status().contains(u"nll >"_s), qPrintable(bar.status()));
        QVERIFY(bar.hits().empty());
        bar.close();
        QVERIFY(!bar.isVisible());
    }

    void whatIsAskedOfTokensIsAFilter() {
        Stage stage({.sequences = 1, .tokens = 300});
        FindBar& bar = stage.panel.findBar();
        stage.panel.find();
        stage.selection.setToken(-1);
        // How much of a token's letters is ink, before and while others are looked for.
        const auto darkest = [&](qint64 token) {
            const QImage image = stage.panel.view().viewport()->grab().toImage();
            const QRect box = stage.panel.view().tokenRect(token).toAlignedRect();
            int least = 255;
            for (int y = box.top(); y <= box.bottom(); ++y) {
                for (int x = box.left(); x <= box.right(); ++x) {
                    least = image.valid(x, y) ? std::min(least, qGray(image.pixel(x, y))) : least;
                }
            }
            return least;
        };
        const int before = darkest(5);
        QVERIFY(before < 80);
        bar.setQuery(u"position = 7"_s);
        QCOMPARE(bar.hits(), std::vector<qint64>{7});
        QVERIFY2(darkest(5) > before + 60, qPrintable(QString::number(darkest(5))));
        QVERIFY(darkest(7) < 80);
        bar.setQuery(u"the"_s); // words: the text stays as it is, and they are outlined
        QVERIFY(darkest(5) < 80);
        const auto outlined = [&](qint64 token) {
            const QImage image = stage.panel.view().viewport()->grab().toImage();
            const QRect box = stage.panel.view().tokenRect(token).toAlignedRect();
            return image.pixel(box.center().x(), box.top()) == stage.theme.colours().a.rgb();
        };
        QVERIFY(bar.hits().size() > 1);
        stage.selection.setToken(-1);
        QVERIFY(outlined(bar.hits().front()));
        const bool none = bar.hits().front() != 0;
        QVERIFY(!outlined(none ? 0 : 1));
        bar.setQuery(u"position = 7"_s);
        bar.close();
        QVERIFY(darkest(5) < 80);
    }

    void whatWasFoundIsSentOn() {
        Stage stage({.sequences = 1, .tokens = 900});
        FindBar& bar = stage.panel.findBar();
        stage.panel.find();
        bar.setQuery(u"nll > 4"_s);
        QTRY_VERIFY(!bar.isBusy());
        QSignalSpy sent(&bar, &FindBar::sent);
        testing::click(bar, u"Compare"_s);
        QCOMPARE(sent.size(), 1);
        const auto subset = sent[0][0].value<TokenSubset>();
        QCOMPARE(subset.query, u"nll > 4"_s);
        QVERIFY(subset.where.contains(u'1'));
        QCOMPARE(subset.rows.at(0).size(), bar.hits().size());
        QCOMPARE(subset.rows.at(0).front(), bar.hits().front() - 1); // where the value stands
    }

    void aWholeRunIsSearched() {
        Stage stage({.sequences = 40, .tokens = 120});
        FindBar& bar = stage.panel.findBar();
        stage.panel.find();
        bar.setWholeRun(true);
        const auto found = [&](const char* query) {
            bar.setQuery(QString::fromLatin1(query));
            return QTest::qWaitFor([&] { return bar.found() != nullptr && !bar.isBusy(); }, 20'000);
        };
        QVERIFY(found("nll > 4"));
        // As many as the rows of the trace say.
        const TraceReader reader = TraceReader::open(stage.trace.toStdString());
        qint64 count = 0;
        std::map<std::int64_t, std::vector<std::int64_t>> rows;
        for (const SequenceInfo& sequence : reader.sequences(1)) {
            const TokenColumns tokens = reader.tokens(1, sequence.number);
            for (std::size_t row = 0; row + 1 < tokens.size(); ++row) {
                if (tokens.nll[row] > 4) {
                    ++count;
                    rows[sequence.number].push_back(static_cast<std::int64_t>(row));
                }
            }
        }
        QVERIFY(count > 20 && rows.size() > 5);
        QCOMPARE(bar.found()->size(), count);
        QCOMPARE(bar.found()->rows, rows);
        QVERIFY2(bar.status().contains(u" %1 "_s.arg(count)), qPrintable(bar.status()));
        QVERIFY2(bar.status().contains(u" %1 "_s.arg(rows.size())), qPrintable(bar.status()));
        QCOMPARE(bar.subset().rows, rows);
        QVERIFY(!bar.subset().where.isEmpty());
        // Enter goes through all of them, from sequence to sequence, and round.
        const auto here = [&] {
            return std::pair(stage.selection.sequence(), stage.selection.rowOf(stage.selection.token()));
        };
        std::vector<std::pair<qint64, qint64>> all;
        for (const auto& [sequence, own] : rows) {
            for (const std::int64_t row : own) {
                all.emplace_back(sequence, row);
            }
        }
        stage.selection.setSequence(all.front().first);
        QTRY_COMPARE(stage.view().sequence()->sequence, all.front().first);
        stage.selection.setToken(stage.selection.tokenOf(all.front().second));
        for (std::size_t i = 1; i <= all.size(); ++i) {
            bar.next();
            QTRY_COMPARE(here(), all[i % all.size()]);
        }
        bar.previous();
        QTRY_COMPARE(here(), all.back());
        // What is nowhere is said to be, and what is not in this sequence alone.
        QVERIFY(found("zyzzyva"));
        QVERIFY(!bar.status().isEmpty());
        QVERIFY(bar.subset().isEmpty());
        bar.setWholeRun(false);
        QVERIFY(bar.found() == nullptr);
        bar.setQuery(u"nll > 4"_s);
        QTRY_VERIFY(!bar.isBusy());
        QCOMPARE(bar.subset().rows.size(), std::size_t{1});
    }

    void aSearchOfAWholeRunIsGivenUp() {
        Stage stage({.sequences = 200, .tokens = 2000});
        FindBar& bar = stage.panel.findBar();
        stage.panel.find();
        bar.setWholeRun(true);
        bar.setQuery(u"the"_s);
        QVERIFY(bar.isBusy());
        QVERIFY2(bar.status().contains(u"searching"_s), qPrintable(bar.status()));
        bar.setQuery(u"zyzzyva"_s); // the first is overtaken
        bar.close();
        QVERIFY(!bar.isBusy());
        // A trace that went meanwhile: a sentence.
        stage.panel.find();
        QVERIFY(QFile::remove(stage.trace));
        bar.setQuery(u"of"_s);
        QTRY_VERIFY_WITH_TIMEOUT(bar.status().contains(stage.trace), 20'000);
    }
};

QTEST_MAIN(TextFindTest)
#include "text_find_test.moc"
