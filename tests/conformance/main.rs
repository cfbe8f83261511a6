//! One table of what an exec is and does, filled once for each backend: native, Docker with runc and
//! Docker with gVisor. What a column cannot do stands in the table with its reason.

mod files;
mod kept;
mod limits;
mod program;
mod record;
mod table;

use support::Column;
use table::Case;

fn cases() -> Vec<Case> {
    [program::CASES, files::CASES, limits::CASES, record::CASES].concat()
}

#[test]
fn native_does_what_every_backend_does() {
    table::fill(Column::Native, &cases());
}

#[test]
fn containers_of_runc_do_what_every_backend_does() {
    table::fill(Column::Runc, &cases());
}

#[test]
fn containers_of_gvisor_do_what_every_backend_does() {
    table::fill(Column::Runsc, &cases());
}
