//! Every limit, reached while the archive streams.

use std::io::Read;

use glovebox_model::{Code, Stage};
use glovebox_workspace::RelPath;
use glovebox_workspace::archive::{Limit, Purpose, Refusal, UnpackLimits, unpack_new};

use crate::archives::ground::{ground, tree};
use crate::archives::tar::Tar;

const SMALL: UnpackLimits = UnpackLimits {
    entries: 10,
    total_bytes: 1 << 20,
    file_bytes: 100_000,
    depth: 4,
    path_bytes: 50,
    ratio: 10,
    ratio_from_bytes: 100_000,
};

fn limit(archive: &[u8]) -> Limit {
    let ground = ground();
    let refused = ground.unpack_within(archive, Purpose::Files, SMALL);
    let refused = refused.unwrap_err();
    assert_eq!(refused.at(Stage::Open).code, Code::PayloadTooLarge);
    match refused.why() {
        Refusal::Limit(limit) => *limit,
        other => panic!("{other:?}"),
    }
}

#[test]
fn one_file_and_one_path_have_their_limits() {
    let large = vec![b'x'; 100_001];
    assert_eq!(
        limit(&Tar::new().file("f", &large).end()),
        Limit::FileBytes(100_000)
    );
    let just = Tar::new().file("f", &large[1..]).file("a/b/c/d", "").end();
    ground()
        .unpack_within(&just, Purpose::Files, SMALL)
        .unwrap();
    assert_eq!(
        limit(&Tar::new().file("a/b/c/d/e", "").end()),
        Limit::Depth(4)
    );
    assert_eq!(
        limit(&Tar::new().file(&"x".repeat(51), "").end()),
        Limit::PathBytes(50)
    );
}

#[test]
fn all_together_have_theirs() {
    let mut archive = Tar::new();
    for number in 0..11 {
        archive = archive.file(&number.to_string(), vec![7; 100_000]);
    }
    let archive = archive.end();
    assert_eq!(limit(&archive), Limit::Entries(10));
    let ground = ground();
    let limits = UnpackLimits {
        entries: 100,
        ..SMALL
    };
    let refused = ground.unpack_within(&archive, Purpose::Files, limits);
    let why = refused.unwrap_err().why().clone();
    assert_eq!(why, Refusal::Limit(Limit::TotalBytes(1 << 20)));
}

#[test]
fn a_bomb_stops_early_however_it_is_packed() {
    // Noise first, so that the beginning looks ordinary.
    let noise: Vec<u8> = (0..40_000u32)
        .map(|n| (n.wrapping_mul(2_654_435_761) >> 24) as u8)
        .collect();
    let mut archive = Tar::new().file("noise", noise);
    for number in 0..9 {
        archive = archive.file(&number.to_string(), vec![0; 100_000]);
    }
    let plain = archive.end();
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    std::io::Write::write_all(&mut gzip, &plain).unwrap();
    assert_eq!(limit(&gzip.finish().unwrap()), Limit::Ratio(10));
    let zstd = zstd::encode_all(plain.as_slice(), 19).unwrap();
    assert_eq!(limit(&zstd), Limit::Ratio(10));
    ground()
        .unpack_within(&plain, Purpose::Files, SMALL)
        .unwrap();
}

/// More than the machine has: it must end long before.
#[test]
fn an_endless_stream_ends() {
    let head = Tar::new().file("f", "").end();
    let ground = ground();
    let path = RelPath::new("new").unwrap();
    let stop = Refusal::Limit(Limit::TotalBytes(1 << 20));
    let endless = head.as_slice().chain(std::io::repeat(0));
    let refused = unpack_new(endless, &ground.dir, &path, Purpose::Files, SMALL);
    assert_eq!(*refused.unwrap_err().why(), stop);
    let again = std::iter::repeat_n(&head[..512], 20_000).flatten().copied();
    let again: Vec<u8> = again.collect();
    let limits = UnpackLimits {
        entries: u64::MAX,
        ..SMALL
    };
    let refused = unpack_new(again.as_slice(), &ground.dir, &path, Purpose::Files, limits);
    assert_eq!(*refused.unwrap_err().why(), stop);
    assert!(tree(&ground.inside()).is_empty());
}

#[test]
fn links_cannot_make_a_whiteout_run_out_of_stack() {
    // Each link leads to the bottom of what the last one began, so the tree is far deeper than any
    // path in the archive.
    let step = "d/".repeat(40);
    let mut archive = Tar::new().dir(&step);
    archive = archive.link("l0", step.trim_end_matches('/'));
    for number in 1..12 {
        let last = number - 1;
        archive = archive.dir(&format!("l{last}/{step}e"));
        archive = archive.link(&format!("l{number}"), &format!("l{last}/{step}e"));
    }
    let ground = ground();
    let limits = UnpackLimits {
        depth: 128,
        ..UnpackLimits::FILES
    };
    let built = archive.clone().end();
    ground
        .unpack_within(&built, Purpose::Image, limits)
        .unwrap();
    let dir = ground.dir.open_dir(&RelPath::new("new").unwrap()).unwrap();
    let whiteout = Tar::new().file(".wh.d", "").end();
    let refused =
        glovebox_workspace::archive::unpack_over(whiteout.as_slice(), &dir, Purpose::Image, limits);
    let why = refused.unwrap_err().why().clone();
    assert_eq!(why, Refusal::Limit(Limit::Depth(256)));
}
