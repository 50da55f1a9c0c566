// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/base/not_a_number.h"
#include "views/common/format.h"
#include "views/common/value_look.h"
#include "views/figure/figure.h"
#include "views/figure/parts.h"
#include "views/figure/token_pieces.h"

#include <algorithm>
#include <cmath>
#include <span>
#include <utility>

using namespace Qt::StringLiterals;

namespace ponderscope::figure {
namespace {

/// \p steps: the word for steps.
QString label_of(TokenColour colour, Attribution attribution, const QString& steps) {
    const QuantityInfo& info = info_of(colour.of);
    const QString text =
        QString::fromUtf8(attribution == Attribution::predicted ? info.label : info.label_next);
    return (colour.minus_b ? u"Δ"_s : QString()) + (text.contains(u'%') ? text.arg(steps) : text);
}

struct Values {
    std::vector<double> of; ///< [token - first]
    ScaleLegend legend;
};

/// With more swatches than this, readers cannot find a class again in the text.
constexpr std::size_t most_swatches = 24;

/// Whether each class has a swatch. If there are too many classes, those with the most tokens have one; \p
/// left_out counts the others.
std::vector<bool> classes_with_swatch(const TokenAnnotations& annotation, std::size_t& left_out) {
    std::vector<std::pair<std::int64_t, std::size_t>> used(annotation.classes.size()); // tokens, class
    for (std::size_t i = 0; i < used.size(); ++i) {
        used[i].second = i;
    }
    for (const double value : annotation.values) {
        if (!std::isnan(value)) {
            --used[static_cast<std::size_t>(value)].first; // the most tokens come first
        }
    }
    std::ranges::sort(used);
    std::vector<bool> shown(used.size());
    left_out = 0;
    for (std::size_t place = 0; place < used.size() && used[place].first < 0; ++place) {
        shown[used[place].second] = place < most_swatches;
        left_out += place < most_swatches ? 0 : 1;
    }
    return shown;
}

/// Draws a swatch for each class that tokens have, on as many lines as needed. Returns y of the last line.
double draw_classes(DisplayList& list, const Style& style, double y, const TokenAnnotations& annotation,
                    const ScaleLegend& legend) {
    std::size_t left_out = 0;
    const std::vector<bool> shown = classes_with_swatch(annotation, left_out);
    double x = style.fonts.width(legend.label, style.soft) + style.size;
    list.text(legend.label, {0, y}, style.soft);
    const double side = style.fonts.cap_height(style.soft);
    const auto make_room = [&](double wide) {
        if (x > 0 && x + wide > style.width) {
            x = 0;
            y += style.size * 1.5;
        }
    };
    for (std::size_t i = 0; i < annotation.classes.size(); ++i) {
        if (!shown[i]) {
            continue;
        }
        const QString name = style.fonts.elided(QString::fromStdString(annotation.classes[i]), style.soft,
                                                style.width - side - style.size);
        const double wide = side + 0.4 * style.size + style.fonts.width(name, style.soft);
        make_room(wide);
        list.rect({x, y - side, side, side}, QColor(legend.map.table()[i]),
                  {style.colours.border, 0.35, {}, false});
        list.text(name, {x + side + 0.4 * style.size, y}, style.soft);
        x += wide + style.size;
    }
    if (left_out > 0) {
        const QString more = u"and %1 more"_s.arg(left_out);
        make_room(style.fonts.width(more, style.soft));
        list.text(more, {x, y}, style.soft);
    }
    return y;
}

/// The kind of the numbers, as in the window.
ValueKind kind_of(const FigureSpec& spec, const FigureData& data) {
    if (data.annotation) {
        return kind_of_annotation(QString::fromStdString(spec.annotation), data.annotation->category);
    }
    const NumberKind number = info_of(spec.quantity.of).number;
    return {number, spec.quantity.minus_b,
            number == NumberKind::count ? static_cast<double>(data.runs.front().info.max_steps) : 0};
}

Values values_of(const FigureSpec& spec, const FigureData& data, const Style& style) {
    const RunRows& a = data.runs.front();
    const bool dark = spec.theme == "dark";
    Values values;
    const auto of = info_of(spec.quantity.of).value;
    for (std::int64_t token = a.first; token < a.last && !data.annotation; ++token) {
        double value = not_a_number;
        if (const auto row = a.shown(token, spec.attribution)) {
            value = of(a.rows, *row);
            if (spec.quantity.minus_b) {
                const auto other = data.runs[1].shown(token, spec.attribution);
                value -= other ? of(data.runs[1].rows, *other) : not_a_number;
            }
        }
        values.of.push_back(value);
    }
    if (data.annotation) {
        values.of = data.annotation->values;
    }
    ValueLook look = look_of(kind_of(spec, data), spread_of(std::span<const double>(values.of)));
    look.hold(spec.range);
    ScaleLegend& legend = values.legend;
    legend.label = data.annotation ? QString::fromStdString(spec.annotation).replace(u'_', u' ')
                                   : label_of(spec.quantity, spec.attribution, steps_word(a.info.step_unit));
    if (!data.annotation && spec.quantity.minus_b) {
        legend.label += u", %1 − %2"_s.arg(QString::fromStdString(data.runs[0].label()),
                                           QString::fromStdString(data.runs[1].label()));
    }
    legend.bar = 5 * style.size;
    legend.map = look.kind.number == NumberKind::category ? ColourMap::classes(dark)
                 : look.diverging                         ? ColourMap::diverging(dark)
                                                          : ColourMap::text(dark);
    legend.scale = look.scale;
    legend.signs = look.isSigned();
    for (const double value : values.of) {
        legend.clipped_low = legend.clipped_low || value < legend.scale.low;
        legend.clipped_high = legend.clipped_high || value > legend.scale.high;
    }
    return values;
}

/// Draws a tick for each possible step, in the run's colour if it ran. A bar replaces more than 8 ticks, and
/// ticks that do not fit.
void draw_steps(DisplayList& list, const Style& style, QPointF at, double room, std::int64_t steps,
                std::int64_t most) {
    const double height = style.size * 0.12;
    const double gap = style.size * 0.09;
    const auto count = static_cast<double>(most);
    const double width = std::min(style.size * 0.42, (room - gap * (count - 1)) / count);
    if (most > 8 || width < height) {
        list.rect({at.x(), at.y(), room, height}, style.colours.faint, {}, height / 2);
        if (steps > 0) {
            list.rect({at.x(), at.y(), room * static_cast<double>(steps) / static_cast<double>(most), height},
                      style.colours.a, {}, height / 2);
        }
        return;
    }
    for (std::int64_t k = 0; k < most; ++k) {
        list.rect({at.x() + static_cast<double>(k) * (width + gap), at.y(), width, height},
                  k < steps ? style.colours.a : style.colours.faint, {}, height / 2);
    }
}

/// Sets running text. A line may end between words. A word is a group of units, a unit a group of pieces
/// whose letters are shaped together. Lines follow the reading direction of their scripts.
class Setter {
public:
    Setter(DisplayList& list, const Style& style, const Values& values, const FigureData& data,
           const FigureSpec& spec, bool ticks)
        : list_(list),
          style_(style),
          values_(values),
          run_(data.runs.front()),
          spec_(spec),
          ticks_(ticks),
          pitch_(style.size * (ticks ? 1.9 : 1.6)),
          space_(style.fonts.width(u" "_s, style.body)) {}

    /// Draws the text from \p top on. Returns its height.
    double set(double top) {
        baseline_ = top + style_.size * 0.95;
        x_ = 0;
        const std::vector<TokenPiece> pieces = token_pieces(run_);
        for (auto begin = pieces.begin(); begin != pieces.end();) {
            auto end = begin + 1;
            while (end != pieces.end() && end[-1].breaks == 0) {
                ++end;
            }
            paragraph({begin, end});
            begin = end;
        }
        const bool line_open = !line_.empty();
        end_line();
        return baseline_ + (line_open ? 0 : -pitch_) + style_.size * (ticks_ ? 0.75 : 0.4) - top;
    }

private:
    static constexpr double inner = 0.32; ///< points between a letter and the box edge inside a word
    static constexpr double outer = 0.9;  ///< points between a letter and the box edge beside a space

    /// Tokens that are shaped as one text.
    struct Unit {
        QString text;
        std::vector<std::int64_t> tokens;
        std::vector<double> edges{0}; ///< token ends in `text`: UTF-16 positions, may be fractions
        std::size_t place = 0;        ///< position in the paragraph's text
        bool soft = false;
        bool first = false; ///< first unit of its word
        bool last = false;
        std::int8_t level = 0;     ///< bidi level; odd: right to left
        std::int8_t gap_level = 0; ///< bidi level of the space before its word
        double gap = 0;            ///< points before the unit on its line
        double width = 0;
    };

    double padding(const Unit& unit, bool left) const {
        return (left != (unit.level % 2 != 0) ? unit.first : unit.last) ? outer : inner;
    }

    void paragraph(std::span<const TokenPiece> pieces) {
        std::vector<Unit> units;
        QString text; // the paragraph's text, to find its directions
        for (const TokenPiece& piece : pieces) {
            const bool word = units.empty() || piece.starts_word;
            // A token inside a character joins the previous token.
            const bool joins =
                !word && units.back().soft == piece.invisible &&
                (piece.text.isEmpty() || !may_part(units.back().text + piece.text, units.back().text.size()));
            if (!joins) {
                if (word && !units.empty()) {
                    units.back().last = true;
                    text += u' ';
                }
                units.emplace_back();
                units.back().place = static_cast<std::size_t>(text.size());
                units.back().first = word;
                units.back().soft = piece.invisible;
            }
            Unit& unit = units.back();
            text += piece.text;
            unit.text += piece.text;
            unit.tokens.push_back(piece.token);
            unit.edges.push_back(static_cast<double>(unit.text.size()) -
                                 static_cast<double>(piece.last) * (1 - piece.share));
        }
        units.back().last = true;
        const BidiLevels bidi = bidi_levels(text);
        right_to_left_ = bidi.right_to_left;
        for (Unit& unit : units) {
            unit.level = unit.place < bidi.levels.size() ? bidi.levels[unit.place] : std::int8_t{0};
            unit.gap_level = unit.place > 0 ? bidi.levels[unit.place - 1] : std::int8_t{0};
        }
        for (auto begin = units.begin(); begin != units.end();) {
            const auto end =
                std::find_if(begin + 1, units.end(), [](const Unit& unit) { return unit.first; });
            word({begin, end});
            begin = end;
        }
        if (const int breaks = pieces.back().breaks; breaks > 0) {
            next_line();
            baseline_ += (breaks - 1) * pitch_ * 0.35;
        }
    }

    void measure(Unit& unit) const {
        unit.width = style_.fonts.width(unit.text, style_.body) + padding(unit, true) + padding(unit, false);
    }

    void word(std::span<Unit> units) {
        double width = 0;
        for (Unit& unit : units) {
            measure(unit);
            width += unit.width;
        }
        double gap = line_.empty() ? 0 : space_ - outer;
        // A word wider than a line starts on the current line if its first unit fits.
        if (!line_.empty() &&
            x_ + gap + (width > style_.width ? units.front().width : width) > style_.width) {
            next_line();
            gap = 0;
        }
        for (Unit& unit : units) {
            if (!line_.empty() && x_ + gap + unit.width > style_.width) {
                next_line();
                gap = 0;
            }
            if (unit.width > style_.width) {
                unit.text = style_.fonts.elided(unit.text, style_.body, style_.width - 2 * outer);
                measure(unit);
            }
            unit.gap = gap;
            x_ += gap + unit.width;
            gap = 0;
            line_.push_back(unit);
        }
    }

    void next_line() {
        end_line();
        baseline_ += pitch_;
    }

    /// Draws the open line. Reorders units and gaps for words from right to left (UAX 9, L2). A paragraph
    /// from right to left starts at the right.
    void end_line() {
        std::vector<std::int8_t> levels;
        std::vector<const Unit*> things; // null: the gap before the next unit
        for (const Unit& unit : line_) {
            if (unit.gap > 0) {
                levels.push_back(unit.gap_level);
                things.push_back(nullptr);
            }
            levels.push_back(unit.level);
            things.push_back(&unit);
        }
        double x = right_to_left_ ? std::max(0.0, style_.width - x_) : 0;
        for (const std::size_t i : visual_order(levels)) {
            if (things[i] == nullptr) {
                x += things[i + 1]->gap;
            } else {
                draw(*things[i], x);
                x += things[i]->width;
            }
        }
        line_.clear();
        x_ = 0;
    }

    void draw(const Unit& unit, double x) const {
        const double start = x + padding(unit, true);
        const ShapedText shaped = style_.fonts.shape(unit.text, style_.body.bold);
        const auto units = static_cast<double>(unit.text.size());
        for (std::size_t i = 0; i < unit.tokens.size(); ++i) {
            auto [left, right] =
                shaped.extent(std::min(unit.edges[i], units), std::min(unit.edges[i + 1], units));
            left = start + left * style_.size;
            right = start + right * style_.size;
            // At the unit's ends, the box extends to the unit's edge. Tokens of a unit have a small gap.
            const bool leftmost = left - start < 1e-6;
            const bool rightmost = x + unit.width - padding(unit, false) - right < 1e-6;
            left = leftmost ? x + (padding(unit, true) == outer ? 0 : 0.2) : left + 0.1;
            right = rightmost ? x + unit.width - (padding(unit, false) == outer ? 0 : 0.2) : right - 0.1;
            mark(unit.tokens[i], left, std::max(right, left + 0.2));
        }
        TextStyle text = style_.body;
        if (unit.soft) {
            text.color = style_.colours.soft;
        }
        list_.text(unit.text, {start, baseline_}, text);
    }

    /// Draws a token's background and ticks.
    void mark(std::int64_t token, double left, double right) const {
        const double value = values_.of[static_cast<std::size_t>(token - run_.first)];
        if (!std::isnan(value)) {
            const double position = values_.legend.scale.position(value);
            list_.rect({left, baseline_ - style_.size * 0.86, right - left, style_.size * 1.14},
                       QColor(values_.legend.map.at(position)), {},
                       std::min(style_.size * 0.16, (right - left) / 3));
        }
        if (ticks_) {
            if (const auto row = run_.shown(token, spec_.attribution)) {
                draw_steps(list_, style_, {left, baseline_ + style_.size * 0.45}, right - left,
                           run_.rows.steps[*row], run_.info.max_steps);
            }
        }
    }

    DisplayList& list_;
    const Style& style_;
    const Values& values_;
    const RunRows& run_;
    const FigureSpec& spec_;
    bool ticks_;
    double pitch_;
    double space_;
    std::vector<Unit> line_; ///< units of the open line
    bool right_to_left_ = false;
    double x_ = 0; ///< length of the open line
    double baseline_ = 0;
};

std::string table_of(const FigureSpec& spec, const FigureData& data, const Values& values) {
    const RunRows& run = data.runs.front();
    const bool difference = !data.annotation && spec.quantity.minus_b;
    const QuantityInfo& info = info_of(spec.quantity.of);
    const std::string column(info.column);
    const auto number = [&info](const TokenColumns& rows, std::size_t row) {
        const double value = info.value(rows, row);
        const bool real = info.number == NumberKind::nats || info.number == NumberKind::probability;
        return real                ? csv_number(static_cast<float>(value))
               : std::isnan(value) ? std::string()
                                   : csv_number(static_cast<std::int64_t>(value));
    };
    std::string csv = "token,id,text,row," +
                      (data.annotation ? spec.annotation : std::string(name_of(spec.quantity))) +
                      (difference ? "," + column + "_a," + column + "_b" : "") + ",steps\n";
    for (std::int64_t token = run.first; token < run.last; ++token) {
        const auto row = run.shown(token, spec.attribution);
        csv += std::to_string(token) + "," + std::to_string(run.rows.id[run.local(token)]) + "," +
               csv_bytes(token_bytes_of(run, token)) + "," +
               (row ? std::to_string(run.rows.first + static_cast<std::int64_t>(*row)) : "") + ",";
        if (data.annotation) {
            const double value = values.of[static_cast<std::size_t>(token - run.first)];
            csv += std::isnan(value) ? ""
                   : data.annotation->category
                       ? csv_field(data.annotation->classes[static_cast<std::size_t>(value)])
                       : csv_number(value);
        } else if (difference) {
            const auto other = data.runs[1].shown(token, spec.attribution);
            csv += csv_number(values.of[static_cast<std::size_t>(token - run.first)]) + "," +
                   (row ? number(run.rows, *row) : "") + "," +
                   (other ? number(data.runs[1].rows, *other) : "");
        } else if (row) {
            csv += number(run.rows, *row);
        }
        csv += "," + (row ? std::to_string(run.rows.steps[*row]) : "") + "\n";
    }
    return csv;
}

} // namespace

Figure compose_token_text(const FigureSpec& spec, const FigureData& data, const Fonts& fonts) {
    const Style style(spec, fonts);
    const RunRows& run = data.runs.front();
    const Values values = values_of(spec, data, style);
    const bool ticks = spec.step_ticks && run.info.max_steps > 0;

    DisplayList list;
    double y = style.size;
    ScaleLegend legend = values.legend;
    // A label that does not fit gets its own lines instead of "…", because it names the runs of a difference.
    const auto lift = [&](const QString& line) {
        list.text(fonts.elided(line, style.soft, style.width), {0, y}, style.soft);
        y += style.size * 1.4;
    };
    if (!legend.label.trimmed().isEmpty() && scale_legend_width(style, legend) > style.width) {
        const std::vector<QString> lines = wrapped_lines(fonts, style.soft, legend.label, style.width);
        std::for_each(lines.begin(), lines.end() - 1, lift);
        legend.label = lines.back();
    }
    if (scale_legend_width(style, legend) > style.width) {
        lift(legend.label);
        legend.label.clear();
    }
    const bool classes = data.annotation && data.annotation->category;
    double used = style.width; // the next part gets its own line
    if (classes) {
        y = draw_classes(list, style, y, *data.annotation, legend);
    } else {
        used = draw_scale_legend(list, style, {0, y}, legend);
    }
    if (ticks) {
        const QString words =
            spec.attribution == Attribution::predicted ? u"%1 (of %2)"_s : u"%1 at the token (of %2)"_s;
        const QString label = words.arg(steps_word(run.info.step_unit), QString::number(run.info.max_steps));
        const double sample =
            run.info.max_steps > 8
                ? 3 * style.size
                : static_cast<double>(run.info.max_steps) * style.size * 0.51 - style.size * 0.09;
        const double wanted = sample + 3 + fonts.width(label, style.soft);
        double x = style.width - wanted;
        if (used + 0.8 * style.size > x) {
            y += style.size * 1.5;
            x = 0;
        }
        const std::int64_t shown = std::max<std::int64_t>(1, run.info.max_steps * 2 / 3);
        draw_steps(list, style, {x, y - fonts.x_height(style.soft) / 2 - style.size * 0.06}, sample, shown,
                   run.info.max_steps);
        list.text(label, {x + sample + 3, y}, style.soft);
    }
    y += style.size * 0.9;
    y += Setter(list, style, values, data, spec, ticks).set(y);

    Figure figure;
    figure.page = finish(spec, style, list, y, "choose fewer tokens, with \"tokens\": [first, last]");
    figure.tables.push_back({"", table_of(spec, data, values)});
    return figure;
}

} // namespace ponderscope::figure
