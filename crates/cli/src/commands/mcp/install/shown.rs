//! What would change, as people read it.

use std::path::Path;

use imara_diff::{Algorithm, BasicLineDiffPrinter, Diff, InternedInput, UnifiedDiffConfig};

use crate::paint::Paint;
use crate::patch::{Patch, Sides};

/// Some hosts write all they know on one line. Nobody reads that.
const LINE_MOST: usize = 200;

/// Only the lines that change: the neighbours may hold what others keep secret.
pub(super) fn unified(before: &str, after: &str) -> String {
    let (before, after) = (lines(before), lines(after));
    let input = InternedInput::new(before.as_str(), after.as_str());
    let mut diff = Diff::compute(Algorithm::Histogram, &input);
    diff.postprocess_lines(&input);
    let printer = BasicLineDiffPrinter(&input.interner);
    let mut config = UnifiedDiffConfig::default();
    config.context_len(0);
    let text = diff.unified_diff(&printer, config, &input).to_string();
    text.split_inclusive('\n').map(placed).collect()
}

/// A side without lines stands behind the line before it, as `diff` and `patch` have it.
fn placed(line: &str) -> String {
    let sides = line
        .strip_prefix("@@ -")
        .and_then(|it| it.strip_suffix(" @@\n"))
        .and_then(|it| it.split_once(" +"));
    let behind = |side: &str| match side.split_once(',') {
        Some((first, "0")) => {
            let first: usize = first.parse().ok()?;
            Some(format!("{},0", first.saturating_sub(1)))
        }
        _ => Some(side.to_owned()),
    };
    sides
        .and_then(|(old, new)| Some(format!("@@ -{} +{} @@\n", behind(old)?, behind(new)?)))
        .unwrap_or_else(|| line.to_owned())
}

fn lines(text: &str) -> String {
    let cut = |line: &str| match line.char_indices().nth(LINE_MOST) {
        Some((at, _)) => format!("{}…\n", &line[..at]),
        None => format!("{line}\n"),
    };
    text.lines().map(cut).collect()
}

pub(super) fn patch(path: &Path, is_there: bool, unified: &str, paint: Paint) -> String {
    let mut patch = Patch::new(paint, true);
    let sides = match is_there {
        true => Sides::Both,
        false => Sides::After,
    };
    let path = path.display().to_string();
    patch.hunks(path.trim_start_matches('/'), sides, unified);
    patch.text()
}
