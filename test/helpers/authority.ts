import { execFileSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

/** A certificate authority, and a certificate of it for this machine. */
export interface Authority {
  /** In PEM. */
  authority: string;
  /** The paths of the certificate with its chain, and of its key. */
  cert: string;
  key: string;
}

/** Writes its files to the folder. Needs openssl. */
export function makeAuthority(folder: string): Authority {
  const path = (name: string) => join(folder, name);
  const openssl = (...words: string[]) => execFileSync('openssl', words, { cwd: folder, stdio: 'pipe' });
  const newKey = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes'];
  const own = ['-subj', '/CN=Test authority', '-addext', 'basicConstraints=critical,CA:TRUE'];
  openssl('req', '-x509', ...newKey, ...own, '-days', '2', '-keyout', 'ca.key', '-out', 'ca.pem');
  writeFileSync(path('names'), 'subjectAltName=DNS:localhost,IP:127.0.0.1\nbasicConstraints=CA:FALSE\n');
  openssl('req', ...newKey, '-subj', '/CN=localhost', '-keyout', 'key.pem', '-out', 'request.pem');
  const signed = ['-CA', 'ca.pem', '-CAkey', 'ca.key', '-CAcreateserial', '-extfile', 'names', '-days', '2'];
  openssl('x509', '-req', '-in', 'request.pem', ...signed, '-out', 'leaf.pem');
  const authority = readFileSync(path('ca.pem'), 'utf8');
  writeFileSync(path('cert.pem'), readFileSync(path('leaf.pem'), 'utf8') + authority);
  return { authority, cert: path('cert.pem'), key: path('key.pem') };
}
