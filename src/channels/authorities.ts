import { readdirSync, readFileSync, statSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { getCACertificates, setDefaultCACertificates } from 'node:tls';

const certificate = /-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g;

/** Also trusts the certificate authorities of `SSL_CERT_FILE` and `SSL_CERT_DIR`. Node itself reads `NODE_EXTRA_CA_CERTS`. */
export function trustAuthorities(
  { SSL_CERT_FILE: file = '', SSL_CERT_DIR: folders = '' }: Readonly<Record<string, string | undefined>>,
  warn: (message: string) => void,
): void {
  if (file === '' && folders === '') return;
  const found = new Set<string>();
  const attempt = (variable: string, work: () => void) => {
    try {
      work();
    } catch (error) {
      warn(`Cannot use the certificates of ${variable}: ${(error as Error).message}`);
    }
  };
  const read = (path: string) => {
    for (const text of readFileSync(path, 'latin1').match(certificate) ?? []) found.add(text);
  };
  const readUnlessFolder = (path: string) => {
    if (!statSync(path).isDirectory()) read(path);
  };
  if (file !== '') attempt('SSL_CERT_FILE', () => read(file));
  for (const folder of folders.split(delimiter).filter((name) => name !== '')) {
    attempt('SSL_CERT_DIR', () => {
      for (const entry of readdirSync(folder, { withFileTypes: true })) {
        // One unreadable file must not disable the others.
        if (!entry.isDirectory()) attempt('SSL_CERT_DIR', () => readUnlessFolder(join(folder, entry.name)));
      }
    });
  }
  if (found.size === 0) return;
  attempt('SSL_CERT_FILE or SSL_CERT_DIR', () =>
    setDefaultCACertificates([...getCACertificates('default'), ...found]),
  );
}
