// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/base/utf8.h"
#include "tests/support/sample_trace.h"
#include "tests/views/text/made_up_text.h"
#include "views/common/format.h"
#include "views/common/theme.h"
#include "views/text/quantity.h"
#include "views/text/text_layout.h"
#include "views/text/token_text.h"

#include <QGuiApplication>
#include <QPainter>
#include <QTest>

#include <algorithm>
#include <cmath>
#include <limits>

using namespace Qt::StringLiterals;
using namespace ponderscope;
using namespace std::chrono_literals;
using testing::sequence_of;

namespace {

QFont reading() {
    QFont font = QGuiApplication::font();
    font.setPixelSize(19);
    return font;
}

void place(TextLayout& layout) {
    while (!layout.prepare(1s)) {
    }
}

TextLayout laid_out(const std::shared_ptr<const SequenceData>& data, qreal width) {
    TextLayout layout;
    layout.setFont(reading());
    layout.setWidth(width);
    layout.setSequence(data);
    place(layout);
    return layout;
}

/// The first token of each line.
std::vector<qint64> starts_of(const TextLayout& layout) {
    std::vector<qint64> starts;
    for (qint64 line = 0; line < layout.lineCount(); ++line) {
        starts.push_back(layout.firstToken(line));
    }
    return starts;
}

/// Every token once, in order, inside the width, none on top of another.
void check_sound(const TextLayout& layout) {
    qint64 next = 0;
    for (qint64 line = 0; line < layout.lineCount(); ++line) {
        const auto tokens = layout.tokens(line);
        QVERIFY(!tokens.empty());
        QCOMPARE(tokens.front().token, layout.firstToken(line));
        for (const auto& placed : tokens) {
            QCOMPARE(placed.token, next++);
            QVERIFY(placed.right > placed.left);
            QVERIFY(placed.left >= -0.01);
            QVERIFY2(placed.right <= layout.width() + 2.1 || tokens.size() == 1,
                     qPrintable(QString::number(placed.right)));
            QCOMPARE(layout.lineOf(placed.token), line);
        }
    }
    QCOMPARE(next, static_cast<qint64>(layout.sequence()->tokens.size()));
}

std::shared_ptr<SequenceData> english(std::int64_t words) {
    std::string text;
    for (std::int64_t i = 0; i < words; ++i) {
        text += (i == 0 ? "" : " ");
        text += i % 5 == 0 ? "extraordinarily" : i % 3 == 0 ? "the" : "harbour";
        text += i % 17 == 16 ? ".\n" : "";
    }
    return sequence_of(testing::cut_into_tokens(text));
}

} // namespace

class TextLayoutTest : public QObject {
    Q_OBJECT
private Q_SLOTS:
    void wrapsBetweenWords() {
        const auto data = sequence_of({"The", " old", " light", "house", " keeper"});
        const TextLayout wide = laid_out(data, 2000);
        QCOMPARE(wide.lineCount(), 1);
        const auto all = wide.tokens(0);
        QCOMPARE(all.size(), 5u);
        QVERIFY(std::abs(all[3].left - all[2].right) < 0.01); // "light" and "house" are one word
        QVERIFY(all[1].left - all[0].right > 5);
        QVERIFY(all[2].roomBefore && !all[2].roomAfter);
        QVERIFY(!all[3].roomBefore && all[3].roomAfter);
        const qreal room = all[3].right - all[2].left + 2;
        const TextLayout narrow = laid_out(data, room);
        QCOMPARE(narrow.firstToken(narrow.lineOf(2)), 2); // the word goes to the next line as a whole
        QCOMPARE(narrow.lineOf(3), narrow.lineOf(2));
        check_sound(narrow);
    }

    void newlinesEndLines() {
        const TextLayout layout = laid_out(sequence_of({"one", ".", "\n", "two", ".\n\n", "three"}), 800);
        QCOMPARE(starts_of(layout), (std::vector<qint64>{0, 3, 5}));
        check_sound(layout);
    }

    void aWordWiderThanALineBreaksBetweenItsTokens() {
        std::vector<std::string> tokens{"a"};
        for (int i = 0; i < 30; ++i) {
            tokens.push_back("endless");
        }
        const TextLayout layout = laid_out(sequence_of(tokens), 200);
        QVERIFY(layout.lineCount() > 5);
        check_sound(layout);
    }

    void slicesGiveTheSameAsTheWhole() {
        const auto data = english(40'000);
        const TextLayout whole = laid_out(data, 640);
        TextLayout sliced;
        sliced.setFont(reading());
        sliced.setWidth(640);
        sliced.setSequence(data);
        int slices = 0;
        while (!sliced.prepare(200us)) {
            ++slices;
            QVERIFY(sliced.expectedLineCount() >= sliced.lineCount());
        }
        QVERIFY(slices > 1);
        QCOMPARE(starts_of(sliced), starts_of(whole));
        check_sound(whole);
    }

    void rewrappingGivesTheSameAsWrapping() {
        const auto data = english(2000);
        TextLayout layout = laid_out(data, 900);
        const qint64 before = layout.lineCount();
        layout.setWidth(333);
        const TextLayout fresh = laid_out(data, 333);
        QCOMPARE(starts_of(layout), starts_of(fresh));
        layout.setWidth(900);
        QCOMPARE(layout.lineCount(), before);
        check_sound(fresh);
    }

    void growthKeepsWhatIsPlaced() {
        const auto shorter = english(500);
        auto longer = std::make_shared<SequenceData>(*shorter);
        const auto extra = english(1000);
        longer->tokens = extra->tokens;
        longer->text = extra->text;
        auto first = std::make_shared<SequenceData>(*longer);
        const std::size_t half = longer->tokens.size() / 2;
        first->tokens.id.resize(half);
        first->tokens.begin.resize(half);
        first->tokens.end.resize(half);
        TextLayout layout = laid_out(first, 640);
        const qint64 placed = layout.placedTokens();
        QCOMPARE(placed, static_cast<qint64>(half));
        layout.setSequence(longer);
        QCOMPARE(layout.placedTokens(), placed);
        place(layout);
        check_sound(layout);
        layout.setSequence(shorter); // other text: from the beginning
        QCOMPARE(layout.placedTokens(), 0);
    }

    void hitsWhatIsThere() {
        const TextLayout layout = laid_out(english(300), 640);
        for (qint64 line = 0; line < layout.lineCount(); ++line) {
            for (const auto& placed : layout.tokens(line)) {
                QCOMPARE(layout.tokenAt(line, (placed.left + placed.right) / 2, false), placed.token);
            }
        }
        QCOMPARE(layout.tokenAt(0, -50, false), -1);
        QCOMPARE(layout.tokenAt(0, -50, true), 0);
        QCOMPARE(layout.tokenAt(0, 1e6, true), layout.endToken(0) - 1);
        QCOMPARE(layout.tokenAt(-1, 10, true), -1);
        QCOMPARE(layout.tokenAt(layout.lineCount(), 10, true), -1);
        QCOMPARE(layout.lineOf(-1), -1);
        QCOMPARE(layout.lineOf(1 << 30), -1);
    }

    void anyScriptIsPlaced_data() {
        QTest::addColumn<QByteArray>("text");
        QTest::newRow("arabic") << QByteArray("كان الحارس يعد النوارس كل صباح");
        QTest::newRow("hebrew and digits") << QByteArray("המגדלור 1204 ליד הים");
        QTest::newRow("devanagari") << QByteArray("प्रकाशस्तंभ का रखवाला क्षितिज");
        QTest::newRow("thai") << QByteArray("คนเฝ้าประภาคารนับนกนางนวล");
        QTest::newRow("chinese") << QByteArray("灯塔看守人每天早上数海鸥，然后写下潮水的高度。");
        QTest::newRow("emoji, joined")
            << QByteArray("👩‍🔬 family 👨‍👩‍👧‍👦 flag 🇩🇪 skin 👍🏽");
        QTest::newRow("combining") << QByteArray(
            "e\xcc\x81 a\xcc\x8a\xcc\xa3 Z\xcc\x80\xcc\x81\xcc\x82\xcc\x83\xcc\x84lgo");
        QTest::newRow("overrides") << QByteArray("abc\xe2\x80\xae"
                                                 "def\xe2\x80\xac ghi");
        QTest::newRow("broken") << QByteArray("ok \xff\xfe\xc3 \xe2\x82 \xf0\x9f\x98 end");
        QTest::newRow("control") << QByteArray("a\0b\x01 c\x1b[31m\r\n", 12);
        QTest::newRow("spaces") << QByteArray("      indented    code  \n\n\n\t\tx");
        QTest::newRow("rule") << QByteArray(5000, '=');
    }
    void anyScriptIsPlaced() {
        QFETCH(QByteArray, text);
        // Cut in three ways, the last one through every character.
        for (const std::size_t step : {std::size_t{7}, std::size_t{3}, std::size_t{1}}) {
            std::vector<std::string> tokens;
            const std::string all = text.toStdString();
            for (std::size_t i = 0; i < all.size(); i += step) {
                tokens.push_back(all.substr(i, step));
            }
            for (const qreal width : {60.0, 300.0, 2000.0}) {
                const TextLayout layout = laid_out(sequence_of(tokens), width);
                check_sound(layout);
                QImage image(400, 60, QImage::Format_RGB32);
                QPainter painter(&image);
                for (qint64 line = 0; line < std::min<qint64>(layout.lineCount(), 20); ++line) {
                    layout.draw(painter, line, 0, 30, Qt::black, Qt::gray);
                }
            }
        }
    }

    void hebrewReadsFromTheRight() {
        // שלום עולם 12 34, abc def. ‏- a paragraph that begins with Hebrew.
        const auto data =
            sequence_of({"\xd7\xa9\xd7\x9c\xd7\x95\xd7\x9d", " \xd7\xa2\xd7\x95\xd7\x9c\xd7\x9d", " 12",
                         " 34", " abc", " def", "."});
        const TextLayout layout = laid_out(data, 2000);
        check_sound(layout);
        QCOMPARE(layout.lineCount(), 1);
        const auto placed = layout.tokens(0);
        const auto at = [&](std::size_t i) { return placed[i].left; };
        QVERIFY(placed[0].right > 1990); // the line begins at the right edge
        QVERIFY(at(0) > at(1));
        QVERIFY(at(1) > at(2));
        QVERIFY(at(2) > at(3)); // numbers follow the Hebrew words
        QVERIFY(at(3) > at(5));
        QVERIFY(at(4) < at(5)); // English inside keeps its own order
        QVERIFY(at(5) < at(6));
        for (std::size_t i = 0; i < placed.size(); ++i) {
            const qreal middle = (placed[i].left + placed[i].right) / 2;
            QCOMPARE(layout.tokenAt(0, middle, false), static_cast<qint64>(i));
        }
        QVERIFY(placed[0].roomBefore && placed[0].roomAfter);
    }

    void hebrewInsideEnglish() {
        // abc שלום עולם def: only the two words in the middle change places, and the line begins at the left.
        const auto data =
            sequence_of({"abc", " \xd7\xa9\xd7\x9c\xd7\x95\xd7\x9d", " \xd7\xa2\xd7\x95\xd7\x9c\xd7\x9d",
                         " -", " def", "\n", "\xd7\xa9", " x"});
        const TextLayout layout = laid_out(data, 2000);
        check_sound(layout);
        const auto placed = layout.tokens(0);
        QVERIFY(placed[0].left < 1);
        QVERIFY(placed[0].right < placed[2].left);
        QVERIFY(placed[2].right < placed[1].left);
        QVERIFY(placed[1].right < placed[3].left); // the dash is the paragraph's
        QVERIFY(placed[3].right < placed[4].left);
        // The next paragraph has a direction of its own.
        const auto second = layout.tokens(layout.lineOf(6));
        QVERIFY(second[1].right < second[0].left);
        QVERIFY(second[0].right > 1990);
    }

    void aParagraphReadsAsItsFirstWordWithADirection() {
        std::vector<std::string> tokens;
        for (int i = 0; i < 30; ++i) {
            tokens.push_back(" " + std::to_string(1000 + i));
        }
        tokens.emplace_back(" \xd7\xa9\xd7\x9c\xd7\x95\xd7\x9d");
        const TextLayout layout = laid_out(sequence_of(tokens), 400);
        QVERIFY(layout.lineCount() > 2);
        check_sound(layout);
        const auto first = layout.tokens(0);
        QVERIFY(first[0].left > first[1].left); // decided by a word lines below
        QVERIFY(first[0].right > 390);
    }

    void charactersKnowTheirBorders() {
        const std::string text = "a今b\xff\xe4\xbb😀"; // E4 BB: a character that never ends
        const auto bytes = [&](std::size_t begin, std::size_t end) {
            return std::string(whole_characters(text, begin, end).bytes);
        };
        QCOMPARE(bytes(0, 2), std::string("a今"));
        QCOMPARE(whole_characters(text, 0, 2).after, std::size_t{2});
        QCOMPARE(bytes(2, 3), std::string());
        QCOMPARE(whole_characters(text, 2, 3).before, std::size_t{1});
        QCOMPARE(bytes(2, 5), std::string("b"));
        QCOMPARE(whole_characters(text, 2, 5).before, std::size_t{2});
        QCOMPARE(bytes(5, 7), std::string("\xff\xe4"));
        QCOMPARE(bytes(7, 9), std::string("\xbb😀")); // what continues nothing is itself
        QCOMPARE(bytes(9, 9), std::string());
        QCOMPARE(bytes(0, text.size()), text);
        const auto data = sequence_of({" \xe4", "\xbb", "\x8a", "x\xff"});
        QCOMPARE(visible_token_of(data->tokens, data->text, 0), u"␣‹E4› of 今"_s);
        QCOMPARE(visible_token_of(data->tokens, data->text, 1), u"‹BB› of 今"_s);
        QCOMPARE(visible_token_of(data->tokens, data->text, 3), u"x‹FF›"_s);
    }

    void aCharacterOfSeveralTokensIsDrawnWhole() {
        // 今天 as byte-level BPE may cut it, and the same in whole characters.
        const TextLayout cut = laid_out(sequence_of({"\xe4", "\xbb", "\x8a\xe5\xa4", "\xa9", " x"}), 2000);
        const TextLayout whole = laid_out(sequence_of({"今", "天", " x"}), 2000);
        check_sound(cut);
        const auto parts = cut.tokens(0);
        const auto characters = whole.tokens(0);
        // The tokens divide the characters by their bytes, from left to right.
        const qreal wide = characters[0].right - characters[0].left;
        QVERIFY(std::abs(parts[0].right - parts[0].left - wide / 3) < 0.1);
        QVERIFY(std::abs(parts[1].left - parts[0].right) < 0.1);
        QVERIFY(std::abs(parts[2].left - (characters[0].right - wide / 3)) < 0.1);
        QVERIFY(std::abs(parts[3].right - characters[1].right) < 0.1);
        QVERIFY(std::abs(parts[4].left - characters[2].left) < 0.1); // the rest stands where it stood
        for (const auto& placed : parts) {
            QCOMPARE(cut.tokenAt(0, (placed.left + placed.right) / 2, false), placed.token);
        }
        const auto drawn = [](const TextLayout& layout) {
            QImage image(200, 60, QImage::Format_RGB32);
            image.fill(Qt::white);
            QPainter painter(&image);
            layout.draw(painter, 0, 0, 40, Qt::black, Qt::gray);
            painter.end();
            return image;
        };
        QCOMPARE(drawn(cut), drawn(whole));
        // Right to left the first byte lies at the right.
        const auto hebrew = laid_out(sequence_of({"\xd7", "\xa9\xd7\x9c", "\xd7\x95"}), 2000).tokens(0);
        QVERIFY(hebrew[0].left >= hebrew[1].right - 0.1 && hebrew[1].left >= hebrew[2].right - 0.1);
    }

    void charactersStayWholeAtTheEndOfALine() {
        std::vector<std::string> tokens;
        for (int i = 0; i < 40; ++i) {
            for (const char* byte : {"\xe4", "\xbb", "\x8a"}) {
                tokens.emplace_back(byte);
            }
        }
        const TextLayout layout = laid_out(sequence_of(tokens), 150);
        check_sound(layout);
        QVERIFY(layout.lineCount() > 3);
        for (const qint64 start : starts_of(layout)) {
            QCOMPARE(start % 3, 0);
        }
        // A word wider than a line: its letters, too.
        tokens.assign(1, "a");
        for (int i = 0; i < 20; ++i) {
            tokens.emplace_back("\xd0");
            tokens.emplace_back("\x96"); // Ж
        }
        const TextLayout word = laid_out(sequence_of(tokens), 100);
        QVERIFY(word.lineCount() > 2);
        for (qint64 line = 1; line < word.lineCount(); ++line) {
            QCOMPARE(word.firstToken(line) % 2, 1);
        }
    }

    void whatIsSeenAsOneIsNotTornApart() {
        // A flag is two letters, a family three persons and joiners; no line begins with a full stop.
        for (const char* text : {"🇩🇪", "👨‍👩‍👧", "海。"}) {
            const std::string all = text;
            std::vector<std::string> tokens;
            for (std::size_t at = 0; at < all.size(); at += utf8_at(all, at).bytes) {
                tokens.push_back(all.substr(at, utf8_at(all, at).bytes));
            }
            QCOMPARE(laid_out(sequence_of(tokens), 40).lineCount(), 1);
        }
    }

    void cutCharactersAreShownAsBytes() {
        const TokenText first = token_text("\xf0\x9f", 1, false);
        QCOMPARE(first.text, u"‹F0 9F›"_s);
        QVERIFY(first.special);
        QVERIFY(!token_text(" ok", 1, false).special);
        QCOMPARE(token_text(" ok", 1, false).text, u"ok"_s);
        QVERIFY(token_text(" ok", 1, false).spaceBefore);
        QCOMPARE(token_text("  ok", 1, false).text, u"·ok"_s);
        QVERIFY(token_text(".\n", 1, false).breakAfter);
        QVERIFY(token_text("", 17, false).text.startsWith(u"‹id 17›"_s));
        QVERIFY(token_text("", 17, false, u"<s>"_s).text.startsWith(u"<s>"_s));
        QCOMPARE(token_text("", 17, true).text, u"17"_s);
        QVERIFY(token_text(std::string(4000, 'x'), 1, false).text.size() <= 96);
        QVERIFY(!token_text("‹quoted›", 1, false).special); // a text may contain these marks itself
    }

    void aLoneSpaceIsAWordOfItsOwn() {
        // SentencePiece spells words that it does not know as a space and letters.
        const TextLayout layout = laid_out(sequence_of({"the", " ", "r", "iver"}), 800);
        const auto all = layout.tokens(0);
        QCOMPARE(all.size(), 4u);
        QVERIFY(all[1].roomBefore);
        QVERIFY(all[1].left - all[0].right > 5);
        QVERIFY(!token_text("r", 1, false).special);
        QVERIFY(token_text(" ", 1, false).special);
        check_sound(layout);
    }

    void namesThatComeLateAreShown() {
        auto data = sequence_of({"", "There"});
        data->tokens.begin[0] = data->tokens.end[0] = 0;
        QString name;
        TextLayout layout;
        layout.setFont(reading());
        layout.setLabels([&name](int) { return name; });
        layout.setSequence(data);
        place(layout);
        QVERIFY(layout.missesLabels());
        const qreal before = layout.tokens(0)[0].right;
        name = u"<s>"_s;
        layout.setFont(reading());
        place(layout);
        QVERIFY(!layout.missesLabels());
        QVERIFY(layout.tokens(0)[0].right != before);
    }

    void aNameIsThatOfTheRun() {
        // The start token of another tokenizer has the same id and another name.
        const auto one = sequence_of({"", "There"});
        const auto other = sequence_of({"", "Other"});
        QString name = u"<s>"_s;
        const auto width = [&name](TextLayout& layout) {
            layout.setFont(reading());
            layout.setLabels([&name](int) { return name; });
            return [&layout](const std::shared_ptr<SequenceData>& data) {
                layout.setSequence(data);
                place(layout);
                return layout.tokens(0)[0].right;
            };
        };
        TextLayout both;
        const auto shown = width(both);
        shown(one);
        name = u"<|endoftext|>"_s;
        TextLayout alone;
        QCOMPARE(shown(other), width(alone)(other));
    }

    void runsOnIdsShowIds() {
        const TextLayout layout = laid_out(sequence_of({"a", "b", "c"}, false), 400);
        check_sound(layout);
        QCOMPARE(layout.lineCount(), 1);
    }

    void spansThatLieAreNoDisaster() {
        auto data = sequence_of({"one", " two", " three"});
        data->tokens.begin[1] = 900;
        data->tokens.end[1] = std::numeric_limits<std::uint64_t>::max();
        data->tokens.end[2] = 0;
        check_sound(laid_out(data, 300));
    }

    void oneWordIsShapedOnce() {
        const TextLayout layout = laid_out(english(5000), 640);
        QVERIFY2(layout.shapedWords() < 40, qPrintable(QString::number(layout.shapedWords())));
    }

    void annotationsColour() {
        constexpr double none = std::numeric_limits<double>::quiet_NaN();
        const auto data = sequence_of({"a", " b", " c"});
        data->annotations = {{u"kind"_s, true, {u"x"_s, u"y"_s}, {1, none, 0}},
                             {u"score"_s, false, {}, {0.5, -1e300, none}}};
        const TokenValues kind = annotation_values(*data, u"kind"_s);
        QCOMPARE(kind.classes.size(), 2);
        QCOMPARE(kind.values[0], 1.0F); // its own, not that of the token before
        Theme theme{Appearance::light};
        for (const Appearance look : {Appearance::light, Appearance::dark, Appearance::contrast}) {
            theme.setAppearance(look);
            const ColourMap& map = map_of(kind, theme);
            QCOMPARE(map.at(kind.scale.position(1)), theme.classMap().table()[1]);
            QCOMPARE(map.at(kind.scale.position(255)), theme.classMap().table()[255]);
            for (std::size_t i = 1; i < 256; ++i) {
                QVERIFY(theme.classMap().table()[i] != theme.classMap().table()[i - 1]);
            }
        }
        const TokenValues score = annotation_values(*data, u"score"_s);
        QCOMPARE(score.scale.low, -score.scale.high); // some are below zero
        QVERIFY(std::isfinite(score.scale.high) && std::isfinite(score.values[1]));
        QVERIFY(score.notice.isEmpty());
        QVERIFY(annotation_values(*data, u"other"_s).notice.contains(u"other"_s));
        QCOMPARE(format_annotation(data->annotations[0], 0), u"y"_s);
        QCOMPARE(format_annotation(data->annotations[0], 1), QString());
        QCOMPARE(format_annotation(data->annotations[1], 0), u"0.5"_s);
    }

    void valuesFollowTheAttribution() {
        const auto data = sequence_of({"a", "b", "c"});
        const TokenValues predicted = token_values(Quantity::nll, *data, 0, Attribution::predicted);
        QVERIFY(std::isnan(predicted.values[0]));
        QCOMPARE(predicted.values[2], 1.0f);
        QCOMPARE(predicted.scale.high, 8.0);
        const TokenValues predicting = token_values(Quantity::nll, *data, 0, Attribution::predicting);
        QCOMPARE(predicting.values[2], 2.0f);
    }

    void differencesNeedTheSameTokens() {
        const auto a = sequence_of({"a", "b", "c", "d"});
        auto b = sequence_of({"a", "b", "c", "d"});
        b->tokens.nll = {0, 0.5f, 4, std::numeric_limits<float>::quiet_NaN()};
        const TokenValues values = token_differences(Quantity::nll, *a, b.get(), Attribution::predicted);
        QVERIFY(values.notice.isEmpty());
        QCOMPARE(values.values[2], 0.5f);
        QCOMPARE(values.values[3], -2.0f);
        QCOMPARE(values.scale.low, -values.scale.high);
        b->tokens.id[1] = 7;
        const TokenValues other = token_differences(Quantity::nll, *a, b.get(), Attribution::predicted);
        QVERIFY(!other.notice.isEmpty());
        QVERIFY(std::isnan(other.values[2]));
        QVERIFY(!token_differences(Quantity::nll, *a, nullptr, Attribution::predicted).notice.isEmpty());
    }

    void strangeValuesDoNotSpoilTheScale() {
        auto data = sequence_of({"a", "b", "c", "d"});
        data->tokens.nll = {std::numeric_limits<float>::infinity(), -std::numeric_limits<float>::infinity(),
                            std::numeric_limits<float>::quiet_NaN(), 3};
        const TokenValues values = token_values(Quantity::nll, *data, 0, Attribution::predicting);
        QCOMPARE(values.scale.high, 8.0);
        QCOMPARE(values.scale.position(values.values[0]), 1.0);
        data->tokens.rank = {0, 0, 0, 0};
        QVERIFY(std::isnan(token_values(Quantity::rank, *data, 0, Attribution::predicting).values[3]));
    }
};

QTEST_MAIN(TextLayoutTest)
#include "text_layout_test.moc"
