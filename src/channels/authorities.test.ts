import { mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { getCACertificates } from 'node:tls';
import { expect, it } from 'vitest';
import { makeIdentity } from '../../test/helpers/identity.ts';
import { trustAuthorities } from './authorities.ts';

const identity = makeIdentity();

it.skipIf(identity === undefined)('one unreadable file does not affect the others in its folder', () => {
  const folder = mkdtempSync(join(tmpdir(), 'switchboard-test-'));
  symlinkSync(join(folder, 'nothing'), join(folder, 'a.pem'));
  symlinkSync(folder, join(folder, 'folder'));
  writeFileSync(join(folder, 'b.pem'), identity!.cert);
  const warnings: string[] = [];
  trustAuthorities({ SSL_CERT_DIR: folder }, (warning) => warnings.push(warning));
  expect(warnings).toEqual([expect.stringMatching(/certificates of SSL_CERT_DIR: ENOENT.*a\.pem/)]);
  expect(getCACertificates('default').map((text) => text.trim())).toContain(identity!.cert.trim());
  rmSync(folder, { recursive: true });
});
