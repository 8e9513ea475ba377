//! TLS: how the identity of the server is checked (`sslmode`, `sslrootcert`).

use std::path::PathBuf;
use std::sync::Arc;

use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{CertificateError, ClientConfig, DigitallySignedStruct, Error, RootCertStore, SignatureScheme};
use tokio_postgres::config::SslMode;

use crate::link::encrypted::MakeEncrypted;
use crate::link::open::OpenError;

/// Whether a connection is encrypted, and how the server's certificate is checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum TlsMode {
    /// Not encrypted.
    Disable,
    /// Encrypted if the server supports it; the certificate is not checked.
    #[default]
    Prefer,
    /// Encrypted; the certificate is not checked.
    Require,
    /// Encrypted; a known authority issued the certificate.
    VerifyCa,
    /// Encrypted; a known authority issued the certificate for this host.
    VerifyFull,
}

impl TlsMode {
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        match text {
            "disable" => Ok(Self::Disable),
            "prefer" => Ok(Self::Prefer),
            "require" => Ok(Self::Require),
            "verify-ca" => Ok(Self::VerifyCa),
            "verify-full" => Ok(Self::VerifyFull),
            other => Err(format!(
                "sslmode '{other}' is not known, use disable, prefer, require, verify-ca or verify-full"
            )),
        }
    }

    /// Returns the mode of the driver, which only decides whether to encrypt.
    pub(crate) fn on_the_wire(self) -> SslMode {
        match self {
            Self::Disable => SslMode::Disable,
            Self::Prefer => SslMode::Prefer,
            Self::Require | Self::VerifyCa | Self::VerifyFull => SslMode::Require,
        }
    }
}

/// The certificate authorities to trust.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Roots {
    /// The authorities of the machine, which its administrator maintains.
    Platform,
    /// The authorities in a PEM file.
    File(PathBuf),
}

impl Roots {
    pub(crate) fn parse(text: &str) -> Self {
        if text == "system" { Self::Platform } else { Self::File(PathBuf::from(text)) }
    }

    fn load(&self) -> Result<RootCertStore, OpenError> {
        let mut store = RootCertStore::empty();
        match self {
            Self::Platform => {
                let found = rustls_native_certs::load_native_certs();
                store.add_parsable_certificates(found.certs);
                if store.is_empty() {
                    let why = "this machine has no root certificates; install them (Debian: package \
                               ca-certificates), or name a PEM file with sslrootcert";
                    return Err(OpenError::Tls { why: why.to_owned() });
                }
            }
            Self::File(path) => {
                let unusable = |why: String| OpenError::Tls {
                    why: format!(
                        "sslrootcert '{}' {why}; name a PEM file with the certificate of the authority that \
                         made the server's",
                        path.display()
                    ),
                };
                let certificates = CertificateDer::pem_file_iter(path)
                    .and_then(Iterator::collect::<Result<Vec<_>, _>>)
                    .map_err(|error| unusable(format!("cannot be read: {error}")))?;
                for certificate in certificates {
                    let added = store.add(certificate);
                    added.map_err(|error| {
                        unusable(format!("holds a certificate that cannot be used: {error}"))
                    })?;
                }
                if store.is_empty() {
                    return Err(unusable("holds no certificate".to_owned()));
                }
            }
        }
        Ok(store)
    }
}

/// Makes the TLS settings for a mode.
pub(crate) fn connector(mode: TlsMode, roots: &Roots) -> Result<MakeEncrypted, OpenError> {
    let provider = Arc::new(ring::default_provider());
    let verifier = Arc::new(CertificateVerifier::new(mode, roots, &provider)?);
    let unusable = |error: Error| OpenError::Tls { why: error.to_string() };
    let mut config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(unusable)?
        .dangerous()
        .with_custom_certificate_verifier(verifier)
        .with_no_client_auth();
    // A server that expects TLS from the first byte requires the name of the protocol inside.
    config.alpn_protocols = vec![b"postgresql".to_vec()];
    Ok(MakeEncrypted::new(config))
}

/// Checks a certificate as far as the mode requires.
#[derive(Debug)]
struct CertificateVerifier {
    mode: TlsMode,
    /// The checks; `None` for a mode that checks nothing.
    web: Option<Arc<WebPkiServerVerifier>>,
    provider: Arc<CryptoProvider>,
}

impl CertificateVerifier {
    fn new(mode: TlsMode, roots: &Roots, provider: &Arc<CryptoProvider>) -> Result<Self, OpenError> {
        let web = match mode {
            TlsMode::Disable | TlsMode::Prefer | TlsMode::Require => None,
            TlsMode::VerifyCa | TlsMode::VerifyFull => {
                let roots = Arc::new(roots.load()?);
                let built = WebPkiServerVerifier::builder_with_provider(roots, Arc::clone(provider)).build();
                Some(built.map_err(|error| OpenError::Tls { why: error.to_string() })?)
            }
        };
        Ok(Self { mode, web, provider: Arc::clone(provider) })
    }
}

impl ServerCertVerifier for CertificateVerifier {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let Some(web) = &self.web else { return Ok(ServerCertVerified::assertion()) };
        match web.verify_server_cert(certificate, intermediates, name, ocsp, now) {
            // The name is checked last: everything else is right.
            Err(Error::InvalidCertificate(
                CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
            )) if self.mode == TlsMode::VerifyCa => Ok(ServerCertVerified::assertion()),
            verified => verified,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls12_signature(
            message,
            certificate,
            signature,
            &self.provider.signature_verification_algorithms,
        )
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(
            message,
            certificate,
            signature,
            &self.provider.signature_verification_algorithms,
        )
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}
