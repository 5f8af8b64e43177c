import { afterAll, beforeAll } from 'vitest';

type Use = <Resource extends AsyncDisposable>(resource: Resource) => Resource;

/** Opens resources shared by a file or a `describe`; those passed to `use` are closed afterwards, last first. */
export function setUp(open: (use: Use) => Promise<void>): void {
  const resources = new AsyncDisposableStack();
  beforeAll(() => open((resource) => resources.use(resource)));
  afterAll(() => resources.disposeAsync());
}
