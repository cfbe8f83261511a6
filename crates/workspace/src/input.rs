//! Files that the caller sends along. The sandbox reads them and cannot change them.

use std::collections::BTreeSet;

use glovebox_model::{Code, Error, Input, Result, Stage};

use crate::dir::Dir;
use crate::relpath::{PathError, RelPath, shown};

const FILE_MODE: u32 = 0o444;
const DIR_MODE: u32 = 0o755;

/// Inputs whose paths were all found good.
#[derive(Debug)]
pub(crate) struct Placement<'a>(Vec<(RelPath, &'a [u8])>);

/// Judges every path before the first file is written, so that a bad one loses nothing.
pub(crate) fn check(inputs: &[Input]) -> Result<Placement<'_>> {
    let mut placement = Vec::with_capacity(inputs.len());
    let mut taken: BTreeSet<RelPath> = BTreeSet::new();
    for input in inputs {
        let given = input.path.as_bytes();
        let path = RelPath::new(given)
            .and_then(|path| match path.climbs() {
                true => Err(PathError::Escapes),
                false => Ok(path),
            })
            .map_err(|error| bad(given, error.why(), error.way_out()))?;
        if !taken.insert(path.clone()) {
            return Err(bad(given, "is given twice", "give each input its own path"));
        }
        placement.push((path, input.content.as_slice()));
    }
    for (path, _) in &placement {
        let above = path.prefixes().filter(|prefix| *prefix != path.as_bytes());
        for prefix in above {
            if RelPath::new(prefix).is_ok_and(|prefix| taken.contains(&prefix)) {
                return Err(bad(
                    path.as_bytes(),
                    "lies below another input that is a file",
                    "rename one of the two",
                ));
            }
        }
    }
    Ok(Placement(placement))
}

/// Whether these could be placed, before it is time to.
pub fn check_inputs(inputs: &[Input]) -> Result<()> {
    check(inputs).map(drop)
}

impl Placement<'_> {
    pub(crate) fn place(&self, inputs: &Dir) -> Result<()> {
        for (path, content) in &self.0 {
            if let Ok((Some(parent), _)) = path.split()
                && let Ok(parent) = RelPath::new(parent)
            {
                inputs
                    .mkdir_all(&parent, DIR_MODE)
                    .map_err(|error| error.at(Stage::Open))?;
            }
            inputs
                .write(path, content, FILE_MODE)
                .map_err(|error| error.at(Stage::Open))?;
        }
        Ok(())
    }
}

fn bad(path: &[u8], why: &str, way_out: &str) -> Error {
    let message = format!("input path `{}` {why}", shown(path));
    Error::new(Code::InvalidArgument, Stage::Resolve, message).hint(way_out)
}
