// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "app/desktop/path_edit.h"
#include "app/desktop/record_command.h"

#include <QComboBox>
#include <QDialog>
#include <QLabel>
#include <QLineEdit>
#include <QPlainTextEdit>
#include <QRadioButton>
#include <QSpinBox>

class QPushButton;

namespace ponderscope {

class CommandLine;
class Settings;
class Theme;

/// The Run dialog: asks what to record. Shows the command line, which also works without the window.
class RecordDialog : public QDialog {
    Q_OBJECT
public:
    /// \p openTrace: the shown trace, which gets the run by default; empty: none.
    RecordDialog(Settings& settings, Theme& theme, const QString& openTrace, QWidget* parent = nullptr);

    void offerCheckpoints(const QStringList& folders);
    void setRequest(const RecordRequest& request);
    [[nodiscard]] RecordRequest request() const;
    [[nodiscard]] QString problem() const;
    [[nodiscard]] QString commandLine() const;
    /// Stores the choices as defaults of the next dialog.
    void remember();

protected:
    bool event(QEvent* event) override;

private:
    void dressFields(const Theme& theme); ///< sets ranges, names, tooltips and choices
    void layOut();
    void connectFields();
    [[nodiscard]] RecordRequest lastRequest() const;
    void check();
    void offerPolicies();
    [[nodiscard]] QString suggestedTrace() const;

    Settings& settings_;
    QString openTrace_;
    // The fields are in the order of Tab.
    PathEdit* checkpoint_ = new PathEdit(PathEdit::Kind::folder, u"Checkpoint folder"_s, {}, this);
    QRadioButton* fromFile_ = new QRadioButton(u"Text or JSON Lines"_s, this);
    PathEdit* textFile_ = new PathEdit(PathEdit::Kind::openFile, u"Text file"_s,
                                       u"Texts (*.txt *.md *.jsonl *.jsonl.gz *.jsonl.zst);;"
                                       "Token ids (*.json *.safetensors);;All files (*)"_s,
                                       this);
    QRadioButton* fromPrompt_ = new QRadioButton(u"Prompt"_s, this);
    QPlainTextEdit* prompt_ = new QPlainTextEdit(this);
    QComboBox* method_ = new QComboBox(this);
    QComboBox* device_ = new QComboBox(this);
    QComboBox* dtype_ = new QComboBox(this);
    QComboBox* policy_ = new QComboBox(this);
    QLineEdit* more_ = new QLineEdit(this); ///< further options
    QComboBox* level_ = new QComboBox(this);
    QLabel* price_ = new QLabel(this);
    QSpinBox* context_ = new QSpinBox(this);
    QSpinBox* stride_ = new QSpinBox(this);
    QSpinBox* batch_ = new QSpinBox(this);
    QLineEdit* name_ = new QLineEdit(this);
    PathEdit* trace_ =
        new PathEdit(PathEdit::Kind::saveFile, u"Trace"_s, u"Traces (*.ponder);;All files (*)"_s, this);
    QLabel* problem_ = new QLabel(this);
    CommandLine* command_;
    QPushButton* start_ = nullptr;
};

} // namespace ponderscope
