//! Unpacking layers one over the other. A layer counts only when its bytes were the right ones,
//! packed and unpacked; what it did until then happened where nobody looks.

use std::io::Read;

use glovebox_model::Result;

use super::bundle::{Bundle, mismatch};
use super::import::{Job, Progress, Until};
use super::name::ImageDigest;
use super::oci::Plan;
use super::{STAGE, damaged};
use crate::archive::{
    Digested, Flow, Purpose, Root, UnpackError, UnpackLimits, Unpacked, Unpacking, from_reading,
};
use crate::dir::Dir;

/// Entries between two reports.
const REPORT_EVERY: u64 = 512;

pub(super) fn apply_all(
    job: &Job<'_>,
    bundle: &Bundle,
    plan: &Plan,
    progress: &mut dyn FnMut(Progress),
) -> Result<Unpacked> {
    let limits = job.limits;
    let mut unpacking = Unpacking::new(limits);
    let mut bytes_left = limits.total_bytes;
    for (index, layer) in plan.layers.iter().enumerate() {
        progress(Progress::Layer {
            number: index + 1,
            of: plan.layers.len(),
        });
        let (reader, size) = bundle.open(&layer.file)?;
        if let Some((digest, promised)) = &layer.packed
            && *promised != size
        {
            return Err(mismatch(digest));
        }
        // One more than there should be, to notice that there is more.
        let reader = Until::new(reader, job.canceled);
        let mut packed = Digested::new(reader.take(size.saturating_add(1)));
        let limits = UnpackLimits {
            total_bytes: bytes_left,
            ..limits
        };
        let flow = Flow::new(&mut packed, limits).map_err(|error| error.at(STAGE))?;
        let mut plain = Digested::new(flow);
        apply(&mut plain, job.rootfs, &mut unpacking, progress)?;
        bytes_left = bytes_left.saturating_sub(plain.bytes_read());
        if plain.sha256() != layer.unpacked.hex() {
            return Err(damaged(format!(
                "layer {} does not unpack to `{}`",
                index + 1,
                layer.unpacked
            )));
        }
        if let Some((digest, promised)) = &layer.packed {
            packed.drain().map_err(reading)?;
            if packed.bytes_read() != *promised || packed.sha256() != digest.hex() {
                return Err(mismatch(digest));
            }
        }
    }
    Ok(unpacking.done())
}

/// The archive of a root directory, which is an image by itself.
pub(super) fn apply_one(
    plain: impl Read,
    rootfs: &Dir,
    limits: UnpackLimits,
    progress: &mut dyn FnMut(Progress),
) -> Result<(Unpacked, ImageDigest)> {
    let mut unpacking = Unpacking::new(limits);
    let mut plain = Digested::new(plain);
    apply(&mut plain, rootfs, &mut unpacking, progress)?;
    let digest = ImageDigest::from_hex(&plain.sha256());
    let digest = digest.ok_or_else(|| damaged("the archive has no digest"))?;
    Ok((unpacking.done(), digest))
}

fn apply<R: Read>(
    plain: &mut Digested<R>,
    rootfs: &Dir,
    unpacking: &mut Unpacking,
    progress: &mut dyn FnMut(Progress),
) -> Result<()> {
    let mut report = |so_far: &Unpacked| {
        if so_far.entries.is_multiple_of(REPORT_EVERY) {
            progress(Progress::Unpacking {
                entries: so_far.entries,
                bytes: so_far.bytes,
            });
        }
    };
    let mut root = Root::new(rootfs, Purpose::Image);
    unpacking
        .apply(plain, &mut root, &mut report)
        .map_err(|error| error.at(STAGE))?;
    // Padding after the end mark belongs to the digest.
    plain.drain().map_err(reading)
}

fn reading(error: std::io::Error) -> glovebox_model::Error {
    UnpackError::of_archive(from_reading(&error)).at(STAGE)
}
