//! An ordinary process beside the sandboxes, which must notice nothing of what they do.

use tempfile::TempDir;

use crate::Helper;

#[derive(Debug)]
pub struct Neighbour {
    helper: Helper,
    _place: TempDir,
}

impl Neighbour {
    /// # Panics
    /// When it does not come up.
    pub fn start() -> Self {
        let place = tempfile::tempdir().expect("make a directory");
        let file = place.path().join("file");
        let helper = Helper::start(
            include_str!("neighbour.py"),
            &[file.to_str().unwrap_or_default()],
        );
        Self {
            helper,
            _place: place,
        }
    }

    /// # Panics
    /// When anything that it did failed, or it did nothing at all.
    pub fn assert_undisturbed(mut self) {
        let report = self.helper.ask("report");
        assert_eq!(report["errors"], serde_json::json!([]), "{report}");
        assert!(
            report["work"].as_u64().is_some_and(|turns| turns > 0),
            "{report}"
        );
        println!("neighbour: {report}");
    }
}
