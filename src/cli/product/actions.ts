import type { Installation, ProductView } from '../../api/views.ts';
import { callApi, projectPath } from '../api.ts';
import { exitCodes, usageError } from '../exit.ts';
import { inputName, readInput } from '../input.ts';
import { complain, counted, listTable, localTime, print, printJson, tellMoved } from '../output.ts';
import { isConfirmed } from '../prompt.ts';

interface Flags {
  url: string;
  project: string;
  json?: boolean;
}

export async function listProducts({ url, project, json }: Flags): Promise<void> {
  const { products } = await callApi<{ products: ProductView[] }>(
    url,
    'GET',
    projectPath(project, 'products'),
  );
  if (json) printJson(products);
  else if (products.length === 0) print('no products');
  else print(listTable(products.map(productRow)));
}

/** Installs a product, or brings it up to the version of its manifest, and shows what that changed. */
export async function installProduct(path: string, { url, project, json }: Flags): Promise<void> {
  const body = parseManifest(await readInput(path), inputName(path));
  const done = await callApi<Installation>(url, 'POST', projectPath(project, 'products'), { body });
  tellMoved(done);
  if (json) printJson(done);
  else print(installationText(done));
}

export async function removeProduct(name: string, flags: Flags & { yes?: boolean }): Promise<number> {
  const question = `Remove the product ${name} with its servers from the project ${flags.project}?`;
  if (!(await isConfirmed(question, flags, 'goes-on'))) {
    complain('Nothing was removed.');
    return exitCodes.failed;
  }
  await callApi(flags.url, 'DELETE', projectPath(flags.project, 'products', name));
  if (flags.json) printJson({ removed: name });
  else print(`removed product ${name}`);
  return exitCodes.ok;
}

function parseManifest(text: string, source: string): object {
  let manifest: unknown;
  try {
    manifest = JSON.parse(text);
  } catch (error) {
    throw usageError(`${source} is not valid JSON: ${(error as Error).message}`);
  }
  if (typeof manifest === 'object' && manifest !== null && !Array.isArray(manifest)) return manifest;
  throw usageError(`${source} is not a manifest: it must be an object with "name", "version" and "mcp".`);
}

export function installationText({ product, added, changed, removed, unchanged }: Installation): string {
  const changes = [
    ...added.map((name) => `+ ${name}`),
    ...changed.map((name) => `~ ${name}`),
    ...removed.map((name) => `- ${name}`),
  ];
  const rest = unchanged.length === 0 ? [] : [`${counted(unchanged.length, 'server')} as before`];
  const what = changes.length === 0 ? ['nothing changed', ...rest] : rest;
  return [
    `product ${product.name} ${product.version}${what.length === 0 ? '' : `: ${what.join(', ')}`}`,
    ...changes,
  ].join('\n  ');
}

function productRow({ name, version, servers, updated_at }: ProductView): string[] {
  return [name, version, localTime(updated_at), servers.join(', ')];
}
