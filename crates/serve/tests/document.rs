//! The description that is checked in is the one that is served.

use std::path::Path;

#[test]
fn the_checked_in_description_is_up_to_date() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../openapi.json");
    let made = glovebox_serve::openapi_json();
    if std::env::var_os("GLOVEBOX_UPDATE_OPENAPI").is_some() {
        std::fs::write(&path, &made).unwrap();
        return;
    }
    let kept = std::fs::read_to_string(&path).unwrap_or_default();
    let first = made
        .lines()
        .zip(kept.lines())
        .position(|(made, kept)| made != kept);
    assert!(
        made == kept,
        "openapi.json differs from what the handlers say, first in line {:?}; \
         run the tests with GLOVEBOX_UPDATE_OPENAPI=1 to write it",
        first.map(|line| line + 1)
    );
}
