import { afterAll, beforeAll } from 'vitest';

type Use = <Resource extends AsyncDisposable>(resource: Resource) => Resource;

/** Opens what the tests of a file or a `describe` share. What it passes to `use` is closed after them, last first. */
export function setUp(open: (use: Use) => Promise<void>): void {
  const resources = new AsyncDisposableStack();
  beforeAll(() => open((resource) => resources.use(resource)));
  afterAll(() => resources.disposeAsync());
}
