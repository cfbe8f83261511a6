//! Files that outlive a run, by the crate's interface: paths, layers, archives, images, races.

mod adapter;
mod archives;
mod cache;
mod change;
mod files;
mod files_api;
mod images;
mod races;
mod retention;
mod seed;
mod toolchain;
