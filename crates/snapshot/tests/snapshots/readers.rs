//! The readers of what lies on disk take any bytes.

use glovebox_snapshot::parse;
use proptest::prelude::*;

use crate::ground::Ground;

const MANIFEST: &[u8] = b"glovebox manifest 1\n";

proptest! {
    #[test]
    fn any_bytes_are_a_value_or_an_error(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
        let _ = parse::manifest(&bytes);
        let _ = parse::pack(&bytes);
        let _ = parse::record(&bytes);
        let mut manifest = MANIFEST.to_vec();
        manifest.extend_from_slice(&bytes);
        let _ = parse::manifest(&manifest);
        let mut pack = b"GBXPACK1".to_vec();
        pack.extend_from_slice(&bytes);
        pack.extend_from_slice(b"GBXEND01");
        let _ = parse::pack(&pack);
    }

    #[test]
    fn a_manifest_never_claims_more_than_it_has(
        path in "[a-z]{1,8}", lengths in proptest::collection::vec(any::<u64>(), 1..6)
    ) {
        // A file with holes of any lengths: accepted only if they add up, which these do not.
        let mut bytes = MANIFEST.to_vec();
        bytes.push(u8::try_from(path.len()).unwrap());
        bytes.extend_from_slice(path.as_bytes());
        bytes.extend_from_slice(&[0, 0, 0, 0, 0, 0, 1, 7, 1, 0]);
        bytes.push(u8::try_from(lengths.len()).unwrap());
        for length in lengths {
            bytes.push(1);
            let mut left = length;
            while left >= 0x80 {
                bytes.push((left % 0x80) as u8 | 0x80);
                left /= 0x80;
            }
            bytes.push((left % 0x80) as u8);
        }
        let read = parse::manifest(&bytes);
        prop_assert!(read.is_err() || read == Ok(1));
    }
}

#[test]
fn what_was_written_reads_and_every_changed_byte_of_a_record_shows() {
    let ground = Ground::new();
    ground.write("a", "1");
    ground.write("b/c", "2");
    let taken = ground.take();
    let pack = std::fs::read(&ground.files_in("packs")[0]).unwrap();
    assert!(parse::pack(&pack).unwrap() >= 3);
    let record = std::fs::read(&ground.files_in("records")[0]).unwrap();
    assert_eq!(parse::record(&record).unwrap(), taken.snapshot);
    for at in 0..record.len() {
        let mut bad = record.clone();
        bad[at] ^= 0x01;
        assert!(parse::record(&bad).is_err(), "byte {at}");
    }
    for at in 0..pack.len() {
        let mut bad = pack.clone();
        bad[at] ^= 0x20;
        assert!(parse::pack(&bad).is_err(), "byte {at} of {}", pack.len());
    }
}
