//! Who cannot have one.

use glovebox_model::Code;

use crate::house::{Yard, profile, unbound};

pub(crate) fn an_ordinary_user_has_none() {
    let yard = Yard::new();
    let profile = profile();
    let spec = unbound(&profile);
    let warm = yard.native().warm(&spec, &yard.house.state(), None);
    assert_eq!(warm.unwrap_err().code, Code::BackendUnavailable);
    let kept = yard.native().keep(&spec, &yard.house.state());
    assert_eq!(kept.unwrap_err().code, Code::BackendUnavailable);
}
