//! Where there can be no layer, nothing runs.

use glovebox_backend::{Layer, Place, Tree};
use glovebox_model::{Access, Code};
use glovebox_workspace::Dir;

use crate::overlay::ground::Ground;

pub(crate) fn a_workspace_that_may_not_be_written_has_no_layer() {
    let ground = Ground::new();
    let held = ground.hold("one");
    let read_only = Place::Tree(Tree {
        directory: &ground.lower,
        access: Access::Ro,
    });
    for place in [read_only, Place::Empty, Place::Later(Access::Rw)] {
        let mut spec = ground.spec();
        spec.work = place;
        let layer = Layer::Disk(held.layer());
        let opened =
            ground
                .yard
                .native()
                .open_layered(&spec, layer.into(), &ground.yard.house.state());
        assert_eq!(opened.unwrap_err().code, Code::InvalidArgument);
    }
}

/// Never a direct bind instead.
pub(crate) fn what_the_kernel_cannot_do_is_told_and_nothing_runs() {
    let ground = Ground::new();
    ground.furnish();
    let before = ground.tree();
    let empty = ground.yard.house.path().join("empty");
    std::fs::create_dir(&empty).unwrap();
    let empty = Dir::open_trusted(&empty).unwrap();
    let (prepared, _) = ground.open(Layer::Disk(&empty)).unwrap();
    let error = ground.see(prepared, &[], "echo ran > ran").unwrap_err();
    assert_eq!(error.code, Code::SetupFailed, "{error:?}");
    assert!(error.message.contains("layer /workspace/work"), "{error:?}");
    assert!(
        error.hints.iter().any(|it| it.contains("direct")),
        "{error:?}"
    );
    assert_eq!(ground.tree(), before);
}
