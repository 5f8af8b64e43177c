import { dockerContract } from './docker-contract.ts';

// Those of gVisor are in the short suite.
dockerContract('docker');
