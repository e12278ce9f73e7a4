// One run of ns-3.44: UDP among stations of an ad hoc network. Prints `RESULT flows=KBPS:KBPS...`, kbit/s of IP packets of each flow.
//
// testbed/validate/ns3_rerun.py builds it with the wheel `ns3` and gives the options: what a case sets up is there, in one place
// with the same case for the medium. The choices of every case are here: UDP over IPv4, fixed routes, neighbour caches filled
// before the start (only data, RTS, CTS and ACK are on the air), 15 dBm, isotropic antennas, noise figure 6 dB.

#include "ns3/applications-module.h"
#include "ns3/core-module.h"
#include "ns3/internet-module.h"
#include "ns3/mobility-module.h"
#include "ns3/network-module.h"
#include "ns3/propagation-module.h"
#include "ns3/single-model-spectrum-channel.h"
#include "ns3/spectrum-wifi-helper.h"
#include "ns3/traffic-control-module.h"
#include "ns3/wifi-module.h"

#include <cstdio>
#include <iostream>
#include <sstream>
#include <string>
#include <vector>

using namespace ns3;

namespace
{

constexpr double UNHEARD_DB = 1000;
constexpr uint32_t UDP_IP_HEADERS = 28; // bytes
constexpr uint16_t FIRST_PORT = 5000;

struct Flow
{
    uint32_t from;
    uint32_t to;
    double bitsPerSecond; // of IP packets
    uint32_t bytes;       // of an IP packet
    uint32_t dscp;
    uint64_t received; // bytes of IP packets after the warm-up
};

double g_warmup = 0.5;

[[noreturn]] void
Refuse(const std::string& option, const std::string& text)
{
    std::cerr << "--" << option << ": " << text << std::endl;
    std::exit(2);
}

// The parts of `text` between semicolons.
std::vector<std::string>
Parts(const std::string& text)
{
    std::vector<std::string> parts;
    std::istringstream stream(text);
    for (std::string part; std::getline(stream, part, ';');)
    {
        parts.push_back(part);
    }
    return parts;
}

void
Received(Flow* flow, Ptr<const Packet> packet, const Address&)
{
    if (Simulator::Now() >= Seconds(g_warmup))
    {
        flow->received += packet->GetSize() + UDP_IP_HEADERS;
    }
}

// IPv4 gets each packet `delay` after the MAC has it: a relay forwards while it sends the ACK.
bool
Later(Time delay, Ptr<NetDevice> device, Ptr<const Packet> packet, uint16_t protocol, const Address& from)
{
    auto ip = device->GetNode()->GetObject<Ipv4L3Protocol>();
    if (protocol == Ipv4L3Protocol::PROT_NUMBER)
    {
        Simulator::Schedule(delay, &Ipv4L3Protocol::Receive, ip, device, packet, protocol, from, device->GetAddress(),
                            NetDevice::PACKET_HOST);
    }
    return true;
}

} // namespace

int
main(int argc, char* argv[])
{
    std::string standard = "11a";
    std::string rate;
    std::string control;
    std::string manager;
    std::string error = "Table";
    std::string stations;
    std::string losses;
    std::string flowList;
    std::string route;
    double slot = 0;
    uint32_t width = 20;
    double sense = -82;
    double cca = -82;
    double forward = -1;
    double voiceTxop = -1;
    double seconds = 1;
    uint32_t rts = 1000000;
    uint32_t retries = 7;
    uint32_t queue = 50;
    uint32_t statistics = 50;
    uint32_t seed = 1;
    bool ampdu = true;
    bool discipline = true;
    bool spectrum = false;
    CommandLine cmd(__FILE__);
    cmd.AddValue("standard", "11a, 11b, 11g, 11n, 11ac or 11ax (all three at 5 GHz)", standard);
    cmd.AddValue("rate", "WifiMode of data, where no manager chooses it", rate);
    cmd.AddValue("control", "WifiMode of RTS, where no manager chooses it", control);
    cmd.AddValue("manager", "Ideal or MinstrelHt; empty: the fixed rate", manager);
    cmd.AddValue("error", "error rate model: Table or Nist", error);
    cmd.AddValue("stations", "positions in m, x,y;x,y;...", stations);
    cmd.AddValue("losses", "losses in dB, station>station=dB;...; no other pair hears anything. Empty: two-ray ground", losses);
    cmd.AddValue("flows", "station>station,bit/s,bytes,DSCP;... of IP packets", flowList);
    cmd.AddValue("route", "the stations of a chain in order, n;n;...", route);
    cmd.AddValue("slot", "us; 0: the standard's", slot);
    cmd.AddValue("width", "MHz of the channel at 5 GHz, 20 or 80", width);
    cmd.AddValue("sense", "least power of a preamble, dBm", sense);
    cmd.AddValue("cca", "least power of a frame that keeps the medium busy, dBm", cca);
    cmd.AddValue("forward", "us from the reception of a packet to IPv4; below 0: at once", forward);
    cmd.AddValue("voice-txop", "TXOP limit of AC_VO, us; below 0: the standard's", voiceTxop);
    cmd.AddValue("rts", "RTS threshold, bytes", rts);
    cmd.AddValue("retries", "retry limit of a frame", retries);
    cmd.AddValue("queue", "packets in a queue of the MAC", queue);
    cmd.AddValue("statistics", "ms between two updates of Minstrel-HT's estimates", statistics);
    cmd.AddValue("ampdu", "A-MPDUs", ampdu);
    cmd.AddValue("discipline", "FqCoDel above the MAC's queue", discipline);
    cmd.AddValue("spectrum", "SpectrumWifiPhy in place of YansWifiPhy", spectrum);
    cmd.AddValue("warmup", "s before the measurement", g_warmup);
    cmd.AddValue("seconds", "s of the measurement", seconds);
    cmd.AddValue("seed", "number of the run", seed);
    cmd.Parse(argc, argv);

    const bool dsss = standard == "11b";
    const bool he = standard == "11ax";
    const bool qos = standard == "11n" || standard == "11ac" || he;
    const bool in24GHz = dsss || standard == "11g";
    RngSeedManager::SetSeed(1);
    RngSeedManager::SetRun(seed);
    Config::SetDefault("ns3::WifiMac::FrameRetryLimit", UintegerValue(retries));
    Config::SetDefault("ns3::WifiRemoteStationManager::RtsCtsThreshold", UintegerValue(rts));
    Config::SetDefault("ns3::WifiMacQueue::MaxSize", StringValue(std::to_string(queue) + "p"));
    Config::SetDefault("ns3::WifiMac::MpduBufferSize", UintegerValue(64)); // the window of a Block Ack; of HE 256 by default
    Config::SetDefault("ns3::MinstrelHtWifiManager::UpdateStatistics", TimeValue(MilliSeconds(statistics)));
    Config::SetDefault("ns3::ArpCache::PendingQueueSize", UintegerValue(50));
    Config::SetDefault("ns3::WifiPhy::CcaSensitivity", DoubleValue(cca));
    if (spectrum) // which senses the rest of a frame whose preamble was missed by its energy alone
    {
        Config::SetDefault("ns3::WifiPhy::CcaEdThreshold", DoubleValue(cca));
    }

    auto places = CreateObject<ListPositionAllocator>();
    for (const auto& part : Parts(stations))
    {
        double x = 0;
        double y = 0;
        if (std::sscanf(part.c_str(), "%lf,%lf", &x, &y) != 2)
        {
            Refuse("stations", part + " is no position x,y");
        }
        places->Add(Vector(x, y, 0));
    }
    NodeContainer nodes(places->GetSize());
    MobilityHelper mobility;
    mobility.SetPositionAllocator(places);
    mobility.SetMobilityModel("ns3::ConstantPositionMobilityModel");
    mobility.Install(nodes);

    Ptr<PropagationLossModel> loss;
    if (losses.empty())
    {
        loss = CreateObjectWithAttributes<TwoRayGroundPropagationLossModel>(
            "Frequency", DoubleValue(in24GHz ? 2.437e9 : 5.18e9), "HeightAboveZ", DoubleValue(1.5), "MinDistance",
            DoubleValue(0.5));
    }
    else
    {
        auto matrix = CreateObject<MatrixPropagationLossModel>();
        matrix->SetDefaultLoss(UNHEARD_DB);
        for (const auto& part : Parts(losses))
        {
            uint32_t from = 0;
            uint32_t to = 0;
            double db = 0;
            if (std::sscanf(part.c_str(), "%u>%u=%lf", &from, &to, &db) != 3)
            {
                Refuse("losses", part + " is no loss station>station=dB");
            }
            matrix->SetLoss(nodes.Get(from)->GetObject<MobilityModel>(), nodes.Get(to)->GetObject<MobilityModel>(), db, false);
        }
        loss = matrix;
    }

    // YansWifiPhy decodes a frame that begins within 4 us after a weaker one as if the weaker one were not there:
    // InterferenceHelper::NotifyRxEnd notes its power by the frequencies of bands, which are 0 there
    auto delay = CreateObject<ConstantSpeedPropagationDelayModel>();
    YansWifiPhyHelper yansPhy;
    SpectrumWifiPhyHelper spectrumPhy;
    if (spectrum)
    {
        auto channel = CreateObject<SingleModelSpectrumChannel>();
        channel->SetPropagationDelayModel(delay);
        channel->AddPropagationLossModel(loss);
        spectrumPhy.SetChannel(channel);
    }
    else
    {
        auto channel = CreateObject<YansWifiChannel>();
        channel->SetPropagationDelayModel(delay);
        channel->SetPropagationLossModel(loss);
        yansPhy.SetChannel(channel);
    }
    WifiPhyHelper& phy = spectrum ? static_cast<WifiPhyHelper&>(spectrumPhy) : yansPhy;
    phy.Set("TxPowerStart", DoubleValue(15));
    phy.Set("TxPowerEnd", DoubleValue(15));
    phy.Set("RxNoiseFigure", DoubleValue(6));
    phy.Set("RxSensitivity", DoubleValue(-101));
    phy.Set("ChannelSettings", StringValue(dsss ? "{6, 22, BAND_2_4GHZ, 0}"
                                              : in24GHz ? "{6, 20, BAND_2_4GHZ, 0}"
                                              : width == 80 ? "{42, 80, BAND_5GHZ, 0}"
                                                            : "{36, 20, BAND_5GHZ, 0}"));
    phy.SetPreambleDetectionModel("ns3::ThresholdPreambleDetectionModel", "MinimumRssi", DoubleValue(sense), "Threshold",
                                  DoubleValue(4));
    phy.SetErrorRateModel(error == "Nist" ? "ns3::NistErrorRateModel" : "ns3::TableBasedErrorRateModel");

    WifiHelper wifi;
    wifi.SetStandard(dsss                ? WIFI_STANDARD_80211b
                     : he                ? WIFI_STANDARD_80211ax
                     : standard == "11ac" ? WIFI_STANDARD_80211ac
                     : qos               ? WIFI_STANDARD_80211n
                     : standard == "11g" ? WIFI_STANDARD_80211g
                                         : WIFI_STANDARD_80211a);
    if (manager.empty())
    {
        wifi.SetRemoteStationManager("ns3::ConstantRateWifiManager", "DataMode", StringValue(rate), "ControlMode",
                                     StringValue(control));
    }
    else
    {
        wifi.SetRemoteStationManager("ns3::" + manager + "WifiManager");
    }
    WifiMacHelper mac;
    mac.SetType("ns3::AdhocWifiMac", "QosSupported", BooleanValue(qos));
    auto devices = wifi.Install(phy, mac, nodes);
    const std::string prefix = standard == "11g" ? "ErpOfdmRate" : "OfdmRate";
    for (uint32_t i = 0; i < devices.GetN(); ++i)
    {
        auto device = DynamicCast<WifiNetDevice>(devices.Get(i));
        for (const char* basic : {"6Mbps", "12Mbps", "24Mbps"}) // ns-3 has all four rates of 802.11b as basic rates
        {
            if (!dsss)
            {
                device->GetRemoteStationManager()->AddBasicMode(WifiMode(prefix + basic));
            }
        }
        if (qos && !ampdu)
        {
            device->GetMac()->SetAttribute("BE_MaxAmpduSize", UintegerValue(0));
            device->GetMac()->SetAttribute("VI_MaxAmpduSize", UintegerValue(0));
        }
        if (he)
        {
            // the other one that takes effect in an ad hoc network is 3200; HE-LTFs are of 8 us with both, the standard's of 7.2 and 16
            device->GetHeConfiguration()->SetAttribute("GuardInterval", TimeValue(NanoSeconds(800)));
        }
        if (qos && voiceTxop >= 0)
        {
            device->GetMac()->GetQosTxop(AC_VO)->SetTxopLimit(NanoSeconds(static_cast<int64_t>(1000 * voiceTxop)));
        }
        if (slot > 0)
        {
            device->GetPhy()->SetSlot(NanoSeconds(static_cast<int64_t>(1000 * slot)));
        }
    }
    WifiHelper::AssignStreams(devices, 1000);

    InternetStackHelper().Install(nodes);
    auto interfaces = Ipv4AddressHelper("10.0.0.0", "255.255.255.0").Assign(devices);
    if (!discipline)
    {
        TrafficControlHelper().Uninstall(devices);
    }
    NeighborCacheHelper().PopulateNeighborCache();
    std::vector<uint32_t> chain;
    for (const auto& part : Parts(route))
    {
        chain.push_back(std::stoul(part));
    }
    for (size_t i = 0; i + 2 < chain.size(); ++i)
    {
        auto routes = Ipv4StaticRoutingHelper().GetStaticRouting(nodes.Get(chain[i])->GetObject<Ipv4>());
        routes->AddHostRouteTo(interfaces.GetAddress(chain.back()), interfaces.GetAddress(chain[i + 1]), 1);
    }
    if (forward >= 0)
    {
        for (uint32_t i = 0; i < devices.GetN(); ++i)
        {
            devices.Get(i)->SetReceiveCallback(
                MakeBoundCallback(&Later, NanoSeconds(static_cast<int64_t>(1000 * forward))));
        }
    }

    std::vector<Flow> flows;
    for (const auto& part : Parts(flowList))
    {
        Flow flow{};
        if (std::sscanf(part.c_str(), "%u>%u,%lf,%u,%u", &flow.from, &flow.to, &flow.bitsPerSecond, &flow.bytes, &flow.dscp) != 5)
        {
            Refuse("flows", part + " is no flow station>station,bit/s,bytes,DSCP");
        }
        flows.push_back(flow);
    }
    auto start = CreateObject<UniformRandomVariable>();
    start->SetStream(1);
    for (size_t i = 0; i < flows.size(); ++i)
    {
        Flow& flow = flows[i];
        const uint16_t port = FIRST_PORT + i;
        PacketSinkHelper sink("ns3::UdpSocketFactory", InetSocketAddress(Ipv4Address::GetAny(), port));
        sink.Install(nodes.Get(flow.to)).Get(0)->TraceConnectWithoutContext("Rx", MakeBoundCallback(&Received, &flow));
        OnOffHelper source("ns3::UdpSocketFactory", InetSocketAddress(interfaces.GetAddress(flow.to), port));
        const uint32_t payload = flow.bytes - UDP_IP_HEADERS;
        source.SetConstantRate(DataRate(static_cast<uint64_t>(flow.bitsPerSecond * payload / flow.bytes)), payload);
        source.SetAttribute("Tos", UintegerValue(flow.dscp << 2));
        source.Install(nodes.Get(flow.from)).Start(Seconds(0.05 + 0.02 * start->GetValue()));
    }
    Simulator::Stop(Seconds(g_warmup + seconds));
    Simulator::Run();
    std::cout << "RESULT flows=";
    for (size_t i = 0; i < flows.size(); ++i)
    {
        std::cout << (i ? ":" : "") << flows[i].received * 8 / seconds / 1000;
    }
    std::cout << std::endl;
    Simulator::Destroy();
    return 0;
}
