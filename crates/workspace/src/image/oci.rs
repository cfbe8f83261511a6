//! The documents of an OCI image. All of them come with the digest that names them but the index
//! at the top, which only says what else there is.

use std::collections::BTreeSet;

use glovebox_model::{Error, Result};
use jiff::Timestamp;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use sha2::{Digest, Sha256};

use super::bundle::{Bundle, blob};
use super::name::ImageDigest;
use super::record::ImageConfig;
use super::{damaged, unfit};
use crate::hex::hex;

const DEEPEST_INDEX: u32 = 4;
const MOST_DESCRIPTORS: usize = 1000;
const MOST_LAYERS: usize = 1000;

const INDEXES: [&str; 2] = [
    "application/vnd.oci.image.index.v1+json",
    "application/vnd.docker.distribution.manifest.list.v2+json",
];
const MANIFESTS: [&str; 2] = [
    "application/vnd.oci.image.manifest.v1+json",
    "application/vnd.docker.distribution.manifest.v2+json",
];
/// Which compression it is shows in the bytes themselves.
const LAYERS: [&str; 9] = [
    "application/vnd.oci.image.layer.v1.tar",
    "application/vnd.oci.image.layer.v1.tar+gzip",
    "application/vnd.oci.image.layer.v1.tar+zstd",
    "application/vnd.oci.image.layer.nondistributable.v1.tar",
    "application/vnd.oci.image.layer.nondistributable.v1.tar+gzip",
    "application/vnd.oci.image.layer.nondistributable.v1.tar+zstd",
    "application/vnd.docker.image.rootfs.diff.tar",
    "application/vnd.docker.image.rootfs.diff.tar.gzip",
    "application/vnd.docker.image.rootfs.diff.tar.zstd",
];

/// What is to be unpacked, checked as far as it can be without the layers.
#[derive(Debug)]
pub(super) struct Plan {
    pub(super) digest: ImageDigest,
    pub(super) created_at: Option<Timestamp>,
    pub(super) architecture: String,
    pub(super) config: ImageConfig,
    pub(super) layers: Vec<PlannedLayer>,
}

#[derive(Debug)]
pub(super) struct PlannedLayer {
    /// Its name in the bundle.
    pub(super) file: String,
    /// As it lies there, when the manifest says so.
    pub(super) packed: Option<(ImageDigest, u64)>,
    /// Decompressed, as the configuration says.
    pub(super) unpacked: ImageDigest,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Descriptor {
    media_type: Option<String>,
    digest: ImageDigest,
    size: u64,
    platform: Option<Platform>,
}

#[derive(Debug, Clone, Deserialize)]
struct Platform {
    architecture: String,
    os: String,
}

/// An index or a manifest. One that could be both is neither: two readers would see two images.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Document {
    media_type: Option<String>,
    manifests: Option<Vec<Descriptor>>,
    config: Option<Descriptor>,
    layers: Option<Vec<Descriptor>>,
}

#[derive(Debug)]
struct Manifest {
    config: Descriptor,
    layers: Vec<Descriptor>,
}

#[derive(Debug, Deserialize)]
struct Configuration {
    created: Option<String>,
    architecture: Option<String>,
    os: Option<String>,
    #[serde(default)]
    config: Option<Wishes>,
    rootfs: Rootfs,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Wishes {
    env: Option<Vec<String>>,
    entrypoint: Option<Vec<String>>,
    cmd: Option<Vec<String>>,
    user: Option<String>,
    working_dir: Option<String>,
}

#[derive(Debug, Deserialize)]
struct Rootfs {
    diff_ids: Vec<ImageDigest>,
}

/// The one image in an OCI layout that this machine can run.
pub(super) fn plan(bundle: &Bundle) -> Result<Plan> {
    let index = bundle.document("index.json")?;
    let index: Document = parse("index.json", &index)?;
    let Some(descriptors) = index.manifests.filter(|_| index.layers.is_none()) else {
        return Err(damaged("`index.json` lists no manifests"));
    };
    let mut search = Search::default();
    search.look_at(bundle, descriptors, 0)?;
    search.one()
}

#[derive(Debug, Default)]
struct Search {
    seen: BTreeSet<ImageDigest>,
    found: Vec<Plan>,
    /// Images for other machines.
    others: BTreeSet<String>,
}

impl Search {
    fn look_at(&mut self, bundle: &Bundle, descriptors: Vec<Descriptor>, depth: u32) -> Result<()> {
        if depth >= DEEPEST_INDEX {
            return Err(damaged("its indexes lie within one another too deeply"));
        }
        for descriptor in descriptors {
            // The same image under several names.
            if !self.seen.insert(descriptor.digest.clone()) {
                continue;
            }
            if self.seen.len() > MOST_DESCRIPTORS {
                return Err(
                    unfit("its index lists more than 1000 images").hint("export one image alone")
                );
            }
            if let Some(platform) = &descriptor.platform
                && !fits(&platform.os, &platform.architecture)
            {
                self.others
                    .insert(format!("{}/{}", platform.os, platform.architecture));
                continue;
            }
            match Content::read(bundle, &descriptor)? {
                Content::Index(inner) => self.look_at(bundle, inner, depth + 1)?,
                Content::Manifest(manifest) => self.consider(bundle, &manifest)?,
            }
        }
        Ok(())
    }

    fn consider(&mut self, bundle: &Bundle, manifest: &Manifest) -> Result<()> {
        let text = bundle.verified(&manifest.config.digest, manifest.config.size)?;
        let layers = manifest.layers.iter().map(|layer| {
            let known = layer.media_type.as_deref();
            match known.is_some_and(|kind| LAYERS.contains(&kind)) {
                true => Ok((
                    blob(&layer.digest),
                    Some((layer.digest.clone(), layer.size)),
                )),
                false => Err(unfit(format!(
                    "layer `{}` is of the kind `{}`",
                    layer.digest,
                    known.unwrap_or("unknown").escape_debug()
                ))
                .hint("only tar layers, plain or with gzip or zstd, can be imported")),
            }
        });
        let layers: Result<Vec<_>> = layers.collect();
        match assemble(&text, layers?)? {
            Assembled::Fits(plan) => self.found.push(plan),
            Assembled::ForAnother(platform) => drop(self.others.insert(platform)),
        }
        Ok(())
    }

    fn one(mut self) -> Result<Plan> {
        match (self.found.pop(), self.found.len()) {
            (Some(plan), 0) => Ok(plan),
            (Some(_), more) => Err(unfit(format!("there are {} images in it", more + 1))
                .hint("export one image alone")),
            (None, _) => Err(for_others(&self.others)),
        }
    }
}

enum Content {
    Index(Vec<Descriptor>),
    Manifest(Manifest),
}

impl Content {
    fn read(bundle: &Bundle, descriptor: &Descriptor) -> Result<Self> {
        let text = bundle.verified(&descriptor.digest, descriptor.size)?;
        let document: Document = parse(&descriptor.digest.to_string(), &text)?;
        let ambiguous = || {
            damaged(format!(
                "`{}` is neither index nor manifest",
                descriptor.digest
            ))
        };
        let inner = document.media_type.as_deref();
        let outer = descriptor.media_type.as_deref();
        if inner.is_some() && outer.is_some() && inner != outer {
            return Err(ambiguous());
        }
        let kind = inner.or(outer);
        let may_be = |kinds: &[&str]| kind.is_none_or(|kind| kinds.contains(&kind));
        match (document.manifests, document.config, document.layers) {
            (Some(inner), None, None) if may_be(&INDEXES) => Ok(Self::Index(inner)),
            (None, Some(config), Some(layers)) if may_be(&MANIFESTS) => {
                Ok(Self::Manifest(Manifest { config, layers }))
            }
            _ => Err(ambiguous()),
        }
    }
}

pub(super) enum Assembled {
    Fits(Plan),
    ForAnother(String),
}

/// The configuration and the layers of one image, as a manifest of either kind lists them.
pub(super) fn assemble(
    text: &[u8],
    layers: Vec<(String, Option<(ImageDigest, u64)>)>,
) -> Result<Assembled> {
    let read: Configuration = parse("the configuration", text)?;
    let os = read.os.unwrap_or_else(|| "linux".to_owned());
    let architecture = read.architecture.unwrap_or_else(|| machine().to_owned());
    if !fits(&os, &architecture) {
        return Ok(Assembled::ForAnother(format!("{os}/{architecture}")));
    }
    let unpacked = read.rootfs.diff_ids;
    if unpacked.len() != layers.len() {
        return Err(damaged(format!(
            "the manifest lists {} layers and the configuration {}",
            layers.len(),
            unpacked.len()
        )));
    }
    if layers.len() > MOST_LAYERS {
        return Err(unfit("there are more than 1000 layers in it").hint("flatten the image"));
    }
    let wishes = read.config.unwrap_or_default();
    let some = |text: Option<String>| text.filter(|text| !text.is_empty());
    let digest = ImageDigest::from_hex(&hex(&Sha256::digest(text)));
    let layers = layers.into_iter().zip(unpacked);
    Ok(Assembled::Fits(Plan {
        digest: digest.ok_or_else(|| damaged("the configuration has no digest"))?,
        created_at: read.created.and_then(|text| text.parse().ok()),
        architecture,
        config: ImageConfig {
            env: wishes.env.unwrap_or_default(),
            entrypoint: wishes.entrypoint.unwrap_or_default(),
            cmd: wishes.cmd.unwrap_or_default(),
            user: some(wishes.user),
            workdir: some(wishes.working_dir),
        },
        layers: layers
            .map(|((file, packed), unpacked)| PlannedLayer {
                file,
                packed,
                unpacked,
            })
            .collect(),
    }))
}

pub(super) fn for_others(platforms: &BTreeSet<String>) -> Error {
    let machine = machine();
    let shown: Vec<String> = platforms
        .iter()
        .map(|text| format!("`{}`", text.escape_debug()))
        .collect();
    let message = match shown.is_empty() {
        true => "there is no image in it".to_owned(),
        false => format!(
            "it is for {} and not for `linux/{machine}`",
            shown.join(", ")
        ),
    };
    unfit(message).hint(format!("export the image for `linux/{machine}`"))
}

/// This machine's name in images.
fn machine() -> &'static str {
    match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    }
}

fn fits(os: &str, architecture: &str) -> bool {
    os == "linux" && architecture == machine()
}

pub(super) fn parse<T: DeserializeOwned>(what: &str, text: &[u8]) -> Result<T> {
    serde_json::from_slice(text)
        .map_err(|error| damaged(format!("`{what}` cannot be understood")).caused_by(error))
}
