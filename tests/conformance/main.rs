//! One table of what an exec is and does, filled once for each backend: native, Docker with runc and
//! Docker with gVisor. What a column cannot do stands in the table with its reason.

mod files;
mod kept;
mod limits;
mod program;
mod record;
mod table;

use support::{Column, is_full};
use table::Case;

/// Those that wait for a clock come first, so that the others run beside them.
fn cases(column: Column) -> Vec<Case> {
    let program = match column {
        // Of what an engine does before its runtime is asked, one is enough where it takes longest.
        Column::Runsc if !is_full() => &program::CASES[..1],
        _ => program::CASES,
    };
    [limits::CASES, program, files::CASES, record::CASES].concat()
}

#[test]
fn native_does_what_every_backend_does() {
    table::fill(Column::Native, &cases(Column::Native));
}

#[test]
fn containers_of_runc_do_what_every_backend_does() {
    table::fill(Column::Runc, &cases(Column::Runc));
}

#[test]
fn containers_of_gvisor_do_what_every_backend_does() {
    table::fill(Column::Runsc, &cases(Column::Runsc));
}
