import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { describe, expect, it } from 'vitest';
import { sharedEngine } from '../helpers/docker.ts';
import { serverImage } from '../helpers/images.ts';
import { driverContract } from './contract.ts';
import { type DockerProvider, dockerDriver } from './docker-driver.ts';

/** Runs the driver contract on a real engine, and checks that a server in a container speaks MCP. */
export function dockerContract(provider: DockerProvider): void {
  describe.concurrent('with a real engine', () => {
    driverContract(provider, async (test) => dockerDriver(await sharedEngine(test), provider), {
      hasSurvivors: true,
      hasVolumes: true,
    });

    it(`serves MCP over stdio with ${provider}`, async ({ skip }) => {
      const engine = await sharedEngine({ skip });
      await using made = await dockerDriver(engine, provider);
      const spec = made.spec('', { image: await serverImage(engine, 'toolbox') });
      const instance = await made.driver.start(spec, { log() {} }, new AbortController().signal);
      const { input, output } = instance.stdio!;
      const call = { name: 'echo', arguments: { text: 'hello' } };
      input.write(`${JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params: call })}\n`);
      const [line] = (await once(createInterface({ input: output }), 'line')) as [string];
      expect(JSON.parse(line)).toMatchObject({
        id: 1,
        result: { content: [{ type: 'text', text: 'hello' }] },
      });
      await instance.stop(5_000);
    });
  });
}
