//! A real store of snapshots, to take sound bytes from.

use std::fs;
use std::os::unix::fs::symlink;

use glovebox_snapshot::{Snapshots, Take};
use glovebox_workspace::Dir;

#[derive(Debug)]
pub struct Stored {
    pub pack: Vec<u8>,
    pub record: Vec<u8>,
}

pub fn stored() -> Stored {
    let top = tempfile::tempdir().expect("make a directory");
    let (space, work) = (top.path().join("space"), top.path().join("work"));
    for directory in [&space, &work, &work.join("d")] {
        fs::create_dir(directory).expect("make a directory");
    }
    fs::write(work.join("d/text"), "a line\n".repeat(40)).expect("write a file");
    fs::write(work.join("noise"), [3, 1, 4, 1, 5, 9, 2, 6]).expect("write a file");
    fs::hard_link(work.join("noise"), work.join("same")).expect("make a link");
    symlink("d/text", work.join("to")).expect("make a link");
    let open = |path| Dir::open_trusted(path).expect("open a directory");
    let snapshots = Snapshots::open(&open(&space)).expect("open a store");
    let project = "fuzz".parse().expect("a name of a project");
    let mut watch = ();
    let take = Take {
        label: Some("seed".to_owned()),
        ..Take::new(project, &mut watch)
    };
    snapshots.take(&open(&work), take).expect("take a snapshot");
    let only = |name: &str| {
        let listed = fs::read_dir(space.join("snapshots").join(name)).expect("list the store");
        let path = listed.flatten().next().expect("a file of the store").path();
        fs::read(path).expect("read a file of the store")
    };
    Stored {
        pack: only("packs"),
        record: only("records"),
    }
}

/// The chunks of a sound pack, as they were before they were stored.
pub fn chunks(pack: &[u8]) -> Vec<Vec<u8>> {
    const ITEM: usize = 32 + 8 + 4 + 4 + 1;
    const TRAILER: usize = 8 + 8 + 32 + 8;
    let number = |bytes: &[u8]| {
        let mut number = [0u8; 8];
        number[..bytes.len()].copy_from_slice(bytes);
        usize::try_from(u64::from_le_bytes(number)).unwrap_or(0)
    };
    let trailer = &pack[pack.len() - TRAILER..];
    let (begins, count) = (number(&trailer[..8]), number(&trailer[8..16]));
    let items = pack[begins..].chunks_exact(ITEM).take(count);
    let chunk = |item: &[u8]| {
        let (offset, stored) = (number(&item[32..40]), number(&item[40..44]));
        let bytes = &pack[offset..offset + stored];
        match item[48] {
            0 => bytes.to_vec(),
            _ => zstd::decode_all(bytes).expect("a sound chunk"),
        }
    };
    items.map(chunk).collect()
}
