//! The connection below the protocol: plain, or TLS as PostgreSQL negotiates it.
//!
//! ```text
//!   SSL MODE      TLS                 chain of the certificate       host name
//!   disable       no
//!   allow         no
//!   prefer        if the server has
//!   require       yes                 if authorities are given       no
//!   verify-ca     yes                 yes                            no
//!   verify-full   yes                 yes                            yes
//! ```
//! Authorities are what SSL CERTIFICATE AUTHORITY says, else the system's.
//!
//! The query client gets the stream as it is. The replication client opens its own connections, and its TLS would bring a second crypto library:
//! it connects to a socket in a directory of our own, and [`relay`] passes the bytes on.
//!
//! Not here: who may log in.

use repr::error::state;
use repr::SqlError;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpStream, UnixListener, UnixStream};
use tokio_rustls::rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use tokio_rustls::rustls::client::{verify_server_name, WebPkiServerVerifier};
use tokio_rustls::rustls::crypto::{ring, verify_tls12_signature, verify_tls13_signature, CryptoProvider};
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use tokio_rustls::rustls::server::ParsedCertificate;
use tokio_rustls::rustls::{CertificateError, ClientConfig, DigitallySignedStruct, Error, RootCertStore, SignatureScheme};
use tokio_rustls::TlsConnector;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// Where systems keep the authorities that they trust.
const SYSTEM_AUTHORITIES: [&str; 3] = ["/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt", "/etc/ssl/cert.pem"];
/// `SSLRequest`: length 8, code 80877103.
const SSL_REQUEST: [u8; 8] = [0, 0, 0, 8, 0x04, 0xd2, 0x16, 0x2f];

/// A connection.
pub trait Stream: AsyncRead + AsyncWrite + Unpin + Send {}
impl<T: AsyncRead + AsyncWrite + Unpin + Send> Stream for T {}

/// Certificates as PEM text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Certificates {
    pub authority: Option<String>,
    pub certificate: Option<String>,
    pub key: Option<String>,
}

/// Whether and how connections are encrypted.
#[derive(Clone)]
pub struct Tls {
    /// `None`: plain.
    config: Option<Arc<ClientConfig>>,
    /// A server that has no TLS will do.
    is_optional: bool,
}

impl Tls {
    /// Errors: 22023 for an unknown mode, PEM that cannot be read, a certificate without key, no authorities to verify against.
    pub fn new(mode: &str, certificates: &Certificates) -> Result<Tls, SqlError> {
        let invalid = |m: String| SqlError::new(state::INVALID_PARAMETER_VALUE, m);
        let mode = mode.to_ascii_lowercase().replace('_', "-");
        let (verify, verify_name) = match mode.as_str() {
            "disable" | "allow" => return Ok(Tls { config: None, is_optional: true }),
            "" | "prefer" => (false, false),
            // As libpq: authorities that are given are asked.
            "require" => (certificates.authority.is_some(), false),
            "verify-ca" => (true, false),
            "verify-full" => (true, true),
            other => {
                return Err(invalid(format!("unknown SSL MODE '{other}'")).with_hint("disable, allow, prefer, require, verify-ca and verify-full are there"))
            }
        };
        let provider = Arc::new(ring::default_provider());
        let failed = |e: Error| invalid(format!("invalid SSL options: {e}"));
        let builder = ClientConfig::builder_with_provider(provider.clone()).with_safe_default_protocol_versions().map_err(failed)?;
        let mut given = Vec::new();
        let chain = match verify {
            false => None,
            true => {
                given = certificates
                    .authority
                    .as_deref()
                    .map(pem)
                    .transpose()
                    .map_err(|e| invalid(format!("invalid SSL CERTIFICATE AUTHORITY: {e}")))?
                    .unwrap_or_default();
                let roots = Arc::new(authorities(certificates.authority.as_deref()).map_err(invalid)?);
                let built = WebPkiServerVerifier::builder_with_provider(roots, provider.clone()).build();
                Some(built.map_err(|e| invalid(format!("invalid SSL CERTIFICATE AUTHORITY: {e}")))?)
            }
        };
        let builder = builder.dangerous().with_custom_certificate_verifier(Arc::new(Verifier { chain, given, verify_name, provider }));
        let config = match (&certificates.certificate, &certificates.key) {
            (None, None) => builder.with_no_client_auth(),
            (Some(certificate), Some(key)) => {
                let chain = pem(certificate).map_err(|e| invalid(format!("invalid SSL CERTIFICATE: {e}")))?;
                let key = PrivateKeyDer::from_pem_slice(key.as_bytes()).map_err(|e| invalid(format!("invalid SSL KEY: {e}")))?;
                builder.with_client_auth_cert(chain, key).map_err(failed)?
            }
            _ => return Err(invalid("SSL CERTIFICATE and SSL KEY are only useful together".into())),
        };
        Ok(Tls { config: Some(Arc::new(config)), is_optional: mode.is_empty() || mode == "prefer" })
    }

    /// Certainly no TLS: a client may connect by itself.
    pub fn is_off(&self) -> bool {
        self.config.is_none()
    }

    /// Connects to a server; a host that begins with a slash is the directory of a Unix socket.
    /// Errors: in words; the certificate's fault too.
    pub async fn connect(&self, host: &str, port: u16) -> Result<Box<dyn Stream>, String> {
        match tokio::time::timeout(CONNECT_TIMEOUT, self.try_connect(host, port)).await {
            Ok(result) => result,
            Err(_) => Err(format!("no answer within {} seconds", CONNECT_TIMEOUT.as_secs())),
        }
    }

    async fn try_connect(&self, host: &str, port: u16) -> Result<Box<dyn Stream>, String> {
        let words = |e: io::Error| e.to_string();
        if host.starts_with('/') {
            return Ok(Box::new(UnixStream::connect(socket_path(Path::new(host), port)).await.map_err(words)?));
        }
        let mut tcp = TcpStream::connect((host, port)).await.map_err(words)?;
        tcp.set_nodelay(true).map_err(words)?;
        let Some(config) = &self.config else { return Ok(Box::new(tcp)) };
        tcp.write_all(&SSL_REQUEST).await.map_err(words)?;
        match tcp.read_u8().await.map_err(words)? {
            b'S' => {
                let name = ServerName::try_from(host.to_owned()).map_err(|e| format!("\"{host}\" cannot be in a certificate: {e}"))?;
                match TlsConnector::from(config.clone()).connect(name, tcp).await {
                    Ok(stream) => Ok(Box::new(stream)),
                    // As libpq: whoever only prefers TLS goes on without.
                    Err(_) if self.is_optional => Ok(Box::new(TcpStream::connect((host, port)).await.map_err(words)?)),
                    Err(e) => Err(format!("TLS: {e}")),
                }
            }
            b'N' if self.is_optional => Ok(Box::new(tcp)),
            b'N' => Err("the server does not support TLS, but SSL MODE asks for it".into()),
            _ => Err("the server does not speak PostgreSQL's protocol".into()),
        }
    }
}

fn socket_path(dir: &Path, port: u16) -> PathBuf {
    dir.join(format!(".s.PGSQL.{port}"))
}

/// Takes one connection on a Unix socket and passes its bytes to `stream` and back, until one side ends. Answers with the socket's directory,
/// where only we may look.
pub async fn relay(mut stream: Box<dyn Stream>, port: u16) -> io::Result<PathBuf> {
    let dir = tempfile::Builder::new().prefix("riverdelta-").tempdir()?;
    let listener = UnixListener::bind(socket_path(dir.path(), port))?;
    let path = dir.path().to_owned();
    tokio::spawn(async move {
        let accepted = tokio::time::timeout(CONNECT_TIMEOUT, listener.accept()).await;
        drop((listener, dir));
        if let Ok(Ok((mut local, _))) = accepted {
            if let Err(e) = tokio::io::copy_bidirectional(&mut local, &mut stream).await {
                tracing::debug!(error = %e, "connection to PostgreSQL ended");
            }
        }
    });
    Ok(path)
}

fn pem(text: &str) -> Result<Vec<CertificateDer<'static>>, String> {
    let all: Vec<_> = CertificateDer::pem_slice_iter(text.as_bytes()).collect::<Result<_, _>>().map_err(|e| e.to_string())?;
    if all.is_empty() {
        return Err("there is no PEM certificate in it".into());
    }
    Ok(all)
}

fn authorities(given: Option<&str>) -> Result<RootCertStore, String> {
    let mut store = RootCertStore::empty();
    if let Some(text) = given {
        for certificate in pem(text).map_err(|e| format!("invalid SSL CERTIFICATE AUTHORITY: {e}"))? {
            store.add(certificate).map_err(|e| format!("invalid SSL CERTIFICATE AUTHORITY: {e}"))?;
        }
        return Ok(store);
    }
    for path in SYSTEM_AUTHORITIES {
        if let Ok(certificates) = CertificateDer::pem_file_iter(path) {
            store.add_parsable_certificates(certificates.filter_map(Result::ok));
        }
    }
    match store.is_empty() {
        true => Err("there are no certificate authorities to verify with: give SSL CERTIFICATE AUTHORITY".into()),
        false => Ok(store),
    }
}

/// Verifies as much as the mode says. Where no chain is asked for, any certificate will do, those of old versions too.
#[derive(Debug)]
struct Verifier {
    chain: Option<Arc<WebPkiServerVerifier>>,
    /// A server may show one of these itself: a certificate that signed itself, which PostgreSQL's manual makes.
    given: Vec<CertificateDer<'static>>,
    verify_name: bool,
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let Some(chain) = &self.chain else { return Ok(ServerCertVerified::assertion()) };
        // The chain is looked at before the name.
        match chain.verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now) {
            Err(Error::InvalidCertificate(CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. })) if !self.verify_name => {
                Ok(ServerCertVerified::assertion())
            }
            Err(Error::InvalidCertificate(CertificateError::Other(_))) if self.given.iter().any(|c| c == end_entity) => {
                if self.verify_name {
                    verify_server_name(&ParsedCertificate::try_from(end_entity)?, server_name)?;
                }
                Ok(ServerCertVerified::assertion())
            }
            result => result,
        }
    }
    fn verify_tls12_signature(&self, message: &[u8], cert: &CertificateDer<'_>, dss: &DigitallySignedStruct) -> Result<HandshakeSignatureValid, Error> {
        if self.chain.is_none() {
            return Ok(HandshakeSignatureValid::assertion());
        }
        verify_tls12_signature(message, cert, dss, &self.provider.signature_verification_algorithms)
    }
    fn verify_tls13_signature(&self, message: &[u8], cert: &CertificateDer<'_>, dss: &DigitallySignedStruct) -> Result<HandshakeSignatureValid, Error> {
        if self.chain.is_none() {
            return Ok(HandshakeSignatureValid::assertion());
        }
        verify_tls13_signature(message, cert, dss, &self.provider.signature_verification_algorithms)
    }
    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modes_and_what_they_need() {
        let new = |mode: &str, c: &Certificates| Tls::new(mode, c).map(|t| (t.is_off(), t.is_optional)).map_err(|e| e.message);
        let none = Certificates::default();
        assert_eq!(new("disable", &none), Ok((true, true)));
        assert_eq!(new("", &none), Ok((false, true)));
        assert_eq!(new("Prefer", &none), Ok((false, true)));
        assert_eq!(new("require", &none), Ok((false, false)));
        assert_eq!(new("sometimes", &none), Err("unknown SSL MODE 'sometimes'".into()));
        let bad = Certificates { authority: Some("no PEM".into()), ..none.clone() };
        assert!(new("verify_full", &bad).unwrap_err().contains("SSL CERTIFICATE AUTHORITY"));
        let half = Certificates { certificate: Some("x".into()), ..none };
        assert!(new("require", &half).unwrap_err().contains("together"));
    }
}
