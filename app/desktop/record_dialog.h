// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "app/desktop/record_command.h"

#include <QDialog>

class QComboBox;
class QLabel;
class QLineEdit;
class QPlainTextEdit;
class QPushButton;
class QRadioButton;
class QSpinBox;

namespace ponderscope {

class CommandLine;
class PathEdit;
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
    PathEdit* checkpoint_; ///< this and the next members are in the order of Tab
    QRadioButton* fromFile_;
    PathEdit* textFile_;
    QRadioButton* fromPrompt_;
    QPlainTextEdit* prompt_;
    QComboBox* method_;
    QComboBox* device_;
    QComboBox* dtype_;
    QComboBox* policy_;
    QLineEdit* more_; ///< further options
    QComboBox* level_;
    QLabel* price_;
    QSpinBox* context_;
    QSpinBox* stride_;
    QSpinBox* batch_;
    QLineEdit* name_;
    PathEdit* trace_;
    QLabel* problem_;
    CommandLine* command_;
    QPushButton* start_ = nullptr;
};

} // namespace ponderscope
